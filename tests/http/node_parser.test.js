// Whatever our HTTP decoder takes, Node's parser takes with the same meaning: method, target, fields, body, and whether
// the connection goes on.
//
//   DUET_HTTP_REQUESTS=…/http_requests node --test node_parser.test.js

'use strict';

const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const http = require('node:http');
const { Duplex } = require('node:stream');
const { test } = require('node:test');

const program = process.env.DUET_HTTP_REQUESTS;
assert.ok(program, 'DUET_HTTP_REQUESTS names the program that tells what our decoder says');

const limit = { timeout: 600_000 };

/** What our decoder says to each of the streams. */
function ours(streams) {
  const input = Buffer.concat(streams.flatMap((stream) => [Buffer.from(`${stream.length}\n`), stream]));
  const done = spawnSync(program, { input, maxBuffer: 1 << 30 });
  assert.strictEqual(done.status, 0, String(done.stderr));
  const answers = done.stdout.toString().trimEnd().split('\n').map((line) => JSON.parse(line));
  assert.strictEqual(answers.length, streams.length);
  return answers;
}

const server = http.createServer({ maxHeaderSize: 1 << 16, requestTimeout: 0, headersTimeout: 0 });
const hex = (text) => Buffer.from(text, 'latin1').toString('hex');

/** What Node says to a stream of which it should find COUNT requests: those that it has found, or its error. */
function nodes(stream, count) {
  return new Promise((resolve) => {
    const found = [];
    const timer = setTimeout(() => end('timeout'), 60_000);
    const end = (error) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ found, error });
    };
    const note = (request, response) => {
      const fields = [];
      for (let i = 0; i < request.rawHeaders.length; i += 2)
        fields.push([hex(request.rawHeaders[i]), hex(request.rawHeaders[i + 1])]);
      const told = { method: hex(request.method), target: hex(request.url), fields, keepsAlive: response.shouldKeepAlive };
      const body = [];
      found.push(told);
      request.on('data', (part) => body.push(part));
      request.on('end', () => {
        told.body = Buffer.concat(body).toString('hex');
        if (found.filter((one) => one.body !== undefined).length >= count) end(null);
      });
    };
    const socket = new Duplex({ read() {}, write(chunk, encoding, done) { done(); } });
    socket.note = note;
    // A fault in what follows may come before the ends of the requests before it are told.
    socket.fail = (error) => setImmediate(() => setImmediate(() => end(error.code ?? String(error))));
    server.emit('connection', socket);
    socket.push(stream);
  });
}

const noted = (request, response) => request.socket.note(request, response);
server.on('request', noted);
server.on('checkContinue', noted);
server.on('checkExpectation', noted);
server.on('clientError', (error, socket) => socket.fail(error));

function offersUpgrade(request) {
  return request.fields.some(([name]) => Buffer.from(name, 'hex').toString().toLowerCase() === 'upgrade');
}

/** The requests up to the one after which the connection ends or may speak something else; of methods that Node knows. */
function comparable(requests) {
  const known = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].map(hex);
  const end = requests.findIndex((request) => !known.includes(request.method));
  const taken = end < 0 ? requests : requests.slice(0, end);
  const last = taken.findIndex((request) => !request.keepsAlive || offersUpgrade(request));
  return last < 0 ? taken : taken.slice(0, last + 1);
}

/** Compares all and returns how many requests were taken. */
async function compare(streams) {
  const answers = ours(streams);
  let taken = 0;
  for (const [i, stream] of streams.entries()) {
    const expected = comparable(answers[i].requests);
    if (expected.length === 0) continue;
    const { found, error } = await nodes(stream, expected.length);
    const shown = JSON.stringify(stream.toString('latin1'));
    assert.deepStrictEqual(found.slice(0, expected.length), expected, `${shown} ${error}`);
    taken += expected.length;
  }
  return taken;
}

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const post = (lines, body = '') => `POST /rpc HTTP/1.1\r\nHost: a\r\n${lines}\r\n${body}`;

test('a table of requests that are taken', limit, async () => {
  const table = [
    get, get + get + get,
    post('Content-Length: 2\r\n', '{}') + get,
    post('Content-Length: 0000000000000000005\r\n', 'hello') + get,
    post('Content-Length:5\r\n', '\r\n\r\n\n') + get,
    post('Content-Length:   5   \r\n', 'GET /') + get,
    post('content-LENGTH: 0\r\n') + get,
    post('Connection: close\r\n'), post('Connection: keep-alive, Close\r\n'), post('Connection: , ,close\r\n'),
    post('Connection: closed\r\n') + get, post('Connection: close-x\r\n') + get, post('Connection:\r\n') + get,
    post('Proxy-Connection: close\r\n'), post('Proxy-Connection: keep-alive\r\n') + get,
    post('Connection: keep-alive\r\nConnection: close\r\n'), post('Connection: close\r\nConnection: keep-alive\r\n'),
    post('Expect: 100-continue\r\nContent-Length: 2\r\n', '{}') + get, post('Expect: x\r\n') + get,
    post('Upgrade: h2c\r\n'), post('Connection: Upgrade\r\n') + get,
    post('Content-Length: 2\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n', '{}'),
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    'GET /?a=b&c=%41#d HTTP/1.1\r\nHost: [::1]:80\r\n\r\n',
    'GET //x/../"<>\\^`{|} HTTP/1.1\r\nHost: a\r\n\r\n' + get,
    'HEAD / HTTP/1.1\r\nHOST:a\r\nX:\r\nX: \r\nX:  y  z  \r\nX: é\xff\r\n\r\n' + get,
    `OPTIONS / HTTP/1.1\r\nHost:\r\n!#$%&'*+-.^_\`|~09azAZ: "(),/:;<=>?@[\\]{}\r\n\r\n` + get,
    `GET /${'x'.repeat(2047)} HTTP/1.1\r\nHost: a\r\n\r\n` + get,
    `GET / HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(99)}\r\n` + get,
    `GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(16_000)}\r\n\r\n` + get,
  ].map((text) => Buffer.from(text, 'latin1'));
  for (const [i, answer] of ours(table).entries())
    assert.ok(answer.fault === null && answer.requests.length > 0, table[i].toString('latin1') + answer.fault);
  await compare(table);
});

/** A generator of numbers that are the same each time. */
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function generated(pick) {
  const one = (list) => list[pick(list.length)];
  const lines = [
    'X: y', 'X:', 'x-y:  z ', 'Accept: */*', 'Connection: keep-alive', 'Connection: close', 'Connection: upgrade, close',
    'Connection: Upgrade', 'Connection: ,', 'Proxy-Connection: close', 'Upgrade: websocket', 'Expect: 100-continue',
    'Content-Type: application/json', 'Content-Length: 0', 'Content-Length: 5', 'Content-Length : 5', 'Content-Length: 5 5',
    'Transfer-Encoding: chunked', 'Transfer-Encoding: identity', 'X: \xe9', 'X: a\tb', ' folded', 'Origin: null', 'TE: trailers',
    'Trailer: X', 'Keep-Alive: timeout=5', 'Cookie: a=b', 'Host: b', 'HTTP/1.1: x', 'X: y: z', 'Authorization: Bearer x',
  ];
  let stream = '';
  for (let count = 1 + pick(3); count > 0; --count) {
    const method = one(['GET', 'POST', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'get', 'FOO']);
    stream += `${method} ${one(['/', '/a?b=c', '/%41', '/#', '//', '*', 'http://a/', '/\xe9'].slice(0, pick(8) + 1))} HTTP/1.1\r\n`;
    const fields = ['Host: a'];
    for (let more = pick(4); more > 0; --more) fields.splice(pick(fields.length + 1), 0, one(lines));
    const body = one(['', '', 'hello', '\r\n\r\n ', '0\r\n\r\n']);
    if (body !== '' && pick(4) > 0) fields.push(`Content-Length: ${body.length}`);
    stream += fields.map((line) => `${line}\r\n`).join('') + '\r\n' + body;
  }
  for (let edits = pick(4) === 0 ? 1 + pick(3) : 0; edits > 0; --edits) {
    const at = pick(stream.length);
    const inserted = one(['', '', ' ', '\r', '\n', '\r\n', ':', '\t', ',', '\0', 'x', '0', stream[at] + stream[at], '\x7f', '\xa0']);
    stream = stream.slice(0, at) + inserted + stream.slice(at + pick(2));
  }
  return Buffer.from(stream, 'latin1');
}

test('generated requests', limit, async () => {
  const pick = numbers(1);
  const taken = await compare(Array.from({ length: 20_000 }, () => generated(pick)));
  assert.ok(taken > 5_000, `only ${taken} requests were taken`);
});
