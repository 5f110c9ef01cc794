// Streamable HTTP in front of `duet-rpc mcp`, as the conformance suite wants it. It moves messages and knows what only HTTP
// knows: sessions, headers, statuses, streams. What a message says it leaves to the door, but for ids, which several
// clients may have chosen alike.
//
// Modern requests (2026-07-28) share one door. A legacy client has a door of its own from its initialize on; its session id
// is the door's.

'use strict';

const { spawn } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const http = require('node:http');
const readline = require('node:readline');

const versionKey = 'io.modelcontextprotocol/protocolVersion';
const subscriptionKey = 'io.modelcontextprotocol/subscriptionId';
const headerMismatch = -32020;
const longestBody = 10 << 20;

/** A `duet-rpc mcp` and what waits for it. */
class Door {
  #child;
  #waiting = new Map(); // by our id: {id, token, stream}
  #streams = new Set(); // of GET, for what belongs to no request
  #last = 0;

  constructor({ command, args, cwd, env }) {
    this.#child = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.ended = new Promise((resolve) => this.#child.once('exit', resolve));
    readline.createInterface({ input: this.#child.stdout, crlfDelay: Infinity }).on('line', (line) => this.#take(JSON.parse(line)));
    this.#child.stdin.on('error', () => {}); // it has ended; whoever waits is told below
    this.#child.once('exit', () => {
      for (const { stream } of this.#waiting.values()) stream.break();
    });
  }

  ask(message, stream) {
    const ours = `http-${++this.#last}`;
    const token = message.params?._meta?.progressToken;
    const changed = { ...message, id: ours };
    if (token !== undefined) changed.params = { ...message.params, _meta: { ...message.params._meta, progressToken: ours } };
    this.#waiting.set(ours, { id: message.id, token, stream });
    this.#write(changed);
    stream.onGone(() => {
      if (this.#waiting.delete(ours)) this.#write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: ours } });
    });
  }

  tell(message) {
    this.#write(message);
  }

  /** What no request waits for goes to STREAM from here on. */
  listen(stream) {
    this.#streams.add(stream);
    stream.onGone(() => this.#streams.delete(stream));
  }

  end() {
    this.#child.stdin.end();
    return this.ended;
  }

  #write(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #take(message) {
    if (message.method === undefined) return this.#answer(message);
    const meta = message.params?._meta;
    const ours = meta?.[subscriptionKey] ?? message.params?.progressToken;
    const waiting = this.#waiting.get(ours);
    if (!waiting) return this.#streams.forEach((stream) => stream.send(message));
    if (meta?.[subscriptionKey] !== undefined) meta[subscriptionKey] = String(waiting.id);
    if (message.params.progressToken !== undefined) message.params.progressToken = waiting.token;
    waiting.stream.send(message);
  }

  #answer(message) {
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    this.#waiting.delete(message.id);
    const meta = message.result?._meta;
    if (meta?.[subscriptionKey] !== undefined) meta[subscriptionKey] = String(waiting.id);
    waiting.stream.finish({ ...message, id: waiting.id });
  }
}

/** The response to one POST: one JSON text, or events if something comes before the answer. */
class Stream {
  constructor(response, isModern, headers = {}) {
    this.response = response;
    this.isModern = isModern;
    this.headers = headers;
  }

  onGone(gone) {
    this.response.once('close', gone);
  }

  begin() {
    if (this.response.headersSent) return;
    this.response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', ...this.headers });
    this.response.flushHeaders();
  }

  send(message) {
    this.begin();
    this.response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  }

  finish(message) {
    if (this.response.headersSent) {
      this.send(message);
      this.response.end();
    } else {
      sendJson(this.response, this.isModern ? statusOf(message.error) : 200, message, this.headers);
    }
  }

  break() {
    if (!this.response.headersSent) this.response.writeHead(502);
    this.response.end();
  }
}

function statusOf(error) {
  if (!error) return 200;
  if (error.code === -32601) return 404;
  return [-32602, -32600, -32700, -32020, -32021, -32022].includes(error.code) ? 400 : 200;
}

function sendJson(response, status, message, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(message));
}

function refuse(response, status, code, message, id) {
  sendJson(response, status, { jsonrpc: '2.0', ...(id === undefined ? {} : { id }), error: { code, message } });
}

const isLocal = (host) => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host ?? '');

/** Which header of a modern request is not what its body says; none: undefined. */
function wrongHeader(headers, message) {
  const named = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri', 'tasks/get': 'taskId',
    'tasks/update': 'taskId', 'tasks/cancel': 'taskId' }[message.method];
  const wanted = { 'mcp-method': message.method, 'mcp-protocol-version': message.params?._meta?.[versionKey] };
  if (named) wanted['mcp-name'] = message.params?.[named];
  return Object.keys(wanted).find((name) => wanted[name] !== undefined && headers[name]?.trim() !== wanted[name]);
}

async function bodyOf(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > longestBody) throw new Error('too long');
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString('utf8'));
}

/** Serves /mcp on a free port of the loopback. */
class LocalServer {
  constructor(handle) {
    this.http = http.createServer(handle);
  }

  async listen() {
    await new Promise((resolve) => this.http.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${this.http.address().port}/mcp`;
  }

  async close() {
    this.http.close();
    this.http.closeAllConnections();
  }
}

/** SERVER is what starts a door. */
class Adapter extends LocalServer {
  #server;
  #modern;
  #sessions = new Map();

  constructor(server) {
    super((request, response) => {
      this.#handle(request, response).catch(() => refuse(response, 400, -32700, 'Parse error'));
    });
    this.#server = server;
  }

  async close() {
    await super.close();
    const doors = [...this.#sessions.values(), ...(this.#modern ? [this.#modern] : [])];
    await Promise.all(doors.map((door) => door.end()));
  }

  async #handle(request, response) {
    const { origin } = request.headers;
    const isHere = isLocal(request.headers.host) && (!origin || isLocal(origin.replace(/^https?:\/\//, '')));
    if (!isHere) return refuse(response, 403, -32600, 'not from here');
    if (request.method === 'POST') return this.#post(request, response, await bodyOf(request));
    const session = this.#sessions.get(request.headers['mcp-session-id']);
    if (!session) return response.writeHead(request.headers['mcp-session-id'] ? 404 : 405, { Allow: 'POST' }).end();
    if (request.method === 'DELETE') return this.#forget(request.headers['mcp-session-id'], response);
    const stream = new Stream(response, false);
    stream.begin();
    return session.listen(stream);
  }

  #forget(id, response) {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    session.end();
    response.writeHead(200).end();
  }

  /** The door for a message; none, and then it has been refused. */
  #doorFor(request, response, message) {
    const id = request.headers['mcp-session-id'];
    if (id) {
      const session = this.#sessions.get(id);
      if (!session) refuse(response, 404, -32600, 'no such session', message.id);
      return session;
    }
    if (message.method === 'initialize' && message.params?._meta?.[versionKey] === undefined) {
      const door = new Door(this.#server);
      response.sessionId = randomUUID();
      this.#sessions.set(response.sessionId, door);
      return door;
    }
    this.#modern ??= new Door(this.#server);
    return this.#modern;
  }

  #post(request, response, message) {
    const isLegacy = request.headers['mcp-session-id'] || (message.method === 'initialize' && !message.params?._meta?.[versionKey]);
    if (!isLegacy && message.method) {
      const wrong = wrongHeader(request.headers, message);
      if (wrong) return refuse(response, 400, headerMismatch, `Header mismatch: ${wrong}`, message.id);
    }
    const door = this.#doorFor(request, response, message);
    if (!door) return undefined;
    if (message.id === undefined || message.method === undefined) {
      door.tell(message);
      return response.writeHead(202).end();
    }
    const headers = response.sessionId ? { 'Mcp-Session-Id': response.sessionId } : {};
    return door.ask(message, new Stream(response, !isLegacy, headers));
  }
}

module.exports = { Adapter, LocalServer };
