// vscode-jsonrpc, the library under VS Code's language clients, talks to the daemon.
//
//   NODE_PATH=build/node_modules DUET_RPC_PROGRAM=… node --test vscode-jsonrpc.test.js

'use strict';

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { test } = require('node:test');
const rpc = require('vscode-jsonrpc/node');

const program = process.env.DUET_RPC_PROGRAM;
assert.ok(program, 'DUET_RPC_PROGRAM names the program under test');

const limit = { timeout: 240_000 };

/** A daemon of its own and vscode-jsonrpc's connection to it. */
function start() {
  const child = spawn(program, ['rpc'], { stdio: ['pipe', 'pipe', 'pipe'] });
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(child.stdout), new rpc.StreamMessageWriter(child.stdin));
  const trouble = [];
  connection.onError(([error]) => trouble.push(error));
  connection.onUnhandledNotification((message) => trouble.push(message));
  connection.listen();
  return { child, connection, trouble, exited: once(child, 'exit') };
}

/** Runs BODY with a daemon that is ended by the end of its input. */
function withDaemon(body) {
  return async () => {
    const daemon = start();
    try {
      await body(daemon.connection, daemon);
      daemon.child.stdin.end();
      assert.deepStrictEqual(await daemon.exited, [0, null]);
      assert.deepStrictEqual(daemon.trouble, []);
    } finally {
      daemon.connection.dispose();
      daemon.child.kill('SIGKILL');
    }
  };
}

async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return { code: error.code, message: error.message, data: error.data };
  }
  return assert.fail('it was not refused');
}

test('the six methods', limit, withDaemon(async (connection, daemon) => {
  const info = await connection.sendRequest('initialize', { processId: process.pid, rootUri: null, capabilities: {} });
  assert.strictEqual(info.serverInfo.name, 'duet-rpc');
  assert.strictEqual(info.protocolVersion, '2.0');
  assert.deepStrictEqual(await connection.sendRequest('version'), { version: info.serverInfo.version });
  const names = ['initialize', 'listMethods', 'describeMethods', 'version', 'setLogLevel', 'shutdown'];
  assert.deepStrictEqual((await connection.sendRequest('listMethods')).map((method) => method.name), names);
  assert.deepStrictEqual((await connection.sendRequest('describeMethods')).map((method) => method.name), names);
  const level = await connection.sendRequest('setLogLevel', { level: 'Warn' });
  assert.deepStrictEqual(level, { level: 'warn', success: true });
  assert.deepStrictEqual(await connection.sendRequest('shutdown'), { message: 'Shutting down gracefully' });
  assert.deepStrictEqual(await daemon.exited, [0, null]);
}));

test('params by position, by name, null and absent', limit, withDaemon(async (connection) => {
  const byPosition = new rpc.RequestType1('setLogLevel', rpc.ParameterStructures.byPosition);
  assert.deepStrictEqual(await connection.sendRequest(byPosition, 'error'), { level: 'error', success: true });
  for (const params of [undefined, null, {}, { x: [1] }]) {
    assert.ok((await connection.sendRequest('version', params)).version);
  }
}));

test('errors carry their data', limit, withDaemon(async (connection) => {
  assert.deepStrictEqual(await refusal(connection.sendRequest('frobnicate')),
    { code: rpc.ErrorCodes.MethodNotFound, message: 'Method not found', data: undefined });
  const refused = await refusal(connection.sendRequest('setLogLevel', { level: 'loud' }));
  assert.strictEqual(refused.code, rpc.ErrorCodes.InvalidParams);
  assert.strictEqual(refused.data.param, 'level');
  assert.strictEqual(refused.data.received, 'loud');
  assert.deepStrictEqual(refused.data.accepted, ['debug', 'info', 'warn', 'error']);
}));

test('notifications are silent', limit, withDaemon(async (connection) => {
  await connection.sendNotification('initialized', {});
  await connection.sendNotification('setLogLevel', { level: 5 });
  await connection.sendNotification('exit');
  await connection.sendNotification('$/setTrace', { value: 'off' });
  assert.ok((await connection.sendRequest('version')).version);
}));

test('non-ASCII text', limit, withDaemon(async (connection) => {
  const text = 'Grüße 世界 😀';
  assert.strictEqual((await refusal(connection.sendRequest(text))).code, rpc.ErrorCodes.MethodNotFound);
  assert.strictEqual((await refusal(connection.sendRequest('setLogLevel', { level: text }))).data.received, text);
}));

test('many requests at once are answered in order', limit, withDaemon(async (connection) => {
  const order = [];
  const calls = [];
  for (let number = 0; number < 2000; number += 1) {
    calls.push(connection.sendRequest('describeMethods').then(() => order.push(number)));
  }
  await Promise.all(calls);
  assert.deepStrictEqual(order, calls.map((_, number) => number));
}));

test('a cancelled request is answered, with its result or as cancelled', limit, withDaemon(async (connection) => {
  const source = new rpc.CancellationTokenSource();
  const call = connection.sendRequest('version', source.token);
  source.cancel();
  const outcome = await call.catch((error) => error.code);
  assert.ok(outcome === -32800 || outcome.version);
}));

test('nine megabytes to the daemon', limit, withDaemon(async (connection) => {
  assert.ok((await connection.sendRequest('version', { text: 'x'.repeat(9_000_000) })).version);
  assert.ok((await connection.sendRequest('version', { text: 'é'.repeat(4_500_000) })).version);
}));

test('nine megabytes both ways: a long id comes back', limit, async () => {
  const child = spawn(program, ['rpc'], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const reader = new rpc.StreamMessageReader(child.stdout);
    const writer = new rpc.StreamMessageWriter(child.stdin);
    const answer = new Promise((resolve, reject) => {
      reader.onError(reject);
      reader.listen(resolve);
    });
    const id = 'ö'.repeat(4_500_000);
    await writer.write({ jsonrpc: '2.0', id, method: 'version' });
    const message = await answer;
    assert.ok(message.id === id);
    assert.ok(message.result.version);
    child.stdin.end();
    assert.deepStrictEqual(await once(child, 'exit'), [0, null]);
  } finally {
    child.kill('SIGKILL');
  }
});

test('a reader that pauses', limit, withDaemon(async (connection, daemon) => {
  daemon.child.stdout.pause();
  const calls = [];
  for (let number = 0; number < 500; number += 1) {
    calls.push(connection.sendRequest('describeMethods', { text: 'x'.repeat(10_000) }));
  }
  await new Promise((resolve) => { setImmediate(resolve); });
  daemon.child.stdout.resume();
  assert.strictEqual((await Promise.all(calls)).length, 500);
}));

test('the death of the daemon is noticed', limit, async () => {
  const daemon = start();
  assert.ok((await daemon.connection.sendRequest('version')).version);
  const closed = new Promise((resolve) => { daemon.connection.onClose(resolve); });
  daemon.child.kill('SIGKILL');
  await closed;
  assert.deepStrictEqual(await daemon.exited, [null, 'SIGKILL']);
  daemon.connection.dispose();
});

// What docs/editors.md shows is what is run here, with the project's daemon behind it.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { spawnSync } = require('node:child_process');

const page = fs.readFileSync(path.join(__dirname, '../../../docs/editors.md'), 'utf8');
const code = /^```js\n([^]*?)^```$/m.exec(page)[1];
const { connectToDaemon, runTask } =
  new Function('require', `${code}\nreturn { connectToDaemon, runTask };`)(require);

/** Runs BODY with the daemon of a project of its own. */
function withProject(body) {
  return async () => {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'duet-node-'));
    const folder = path.join(home, 'project');
    fs.mkdirSync(path.join(folder, '.git'), { recursive: true });
    fs.mkdirSync(path.join(home, '.config/duet-rpc'), { recursive: true });
    fs.writeFileSync(path.join(home, '.config/duet-rpc/config.toml'),
      'default_agent = "test"\n[agents.test]\ncommand = ["sh", "-c", "cat"]\nstdin = "prompt"\n');
    const before = { ...process.env };
    process.env.HOME = home;
    delete process.env.XDG_CONFIG_HOME;
    process.env.PATH = `${path.dirname(program)}:${process.env.PATH}`;
    const { child, connection } = connectToDaemon(folder);
    const exited = once(child, 'exit');
    try {
      await body(connection, { child, exited, folder });
    } finally {
      connection.dispose();
      child.kill('SIGKILL');
      spawnSync(program, ['daemon', 'stop', '--force', '--if-running'], { cwd: folder });
      process.env = before;
      fs.rmSync(home, { recursive: true });
    }
  };
}

test('connect: a task and its event', limit, withProject(async (connection, { child, exited }) => {
  const ended = new Promise((resolve) => { connection.onNotification('event.taskCompleted', resolve); });
  const record = await runTask(connection, 'Grüße 世界 😀');
  assert.strictEqual(record.state, 'completed');
  assert.strictEqual(record.result, 'Grüße 世界 😀');
  assert.strictEqual((await ended).taskId, record.id);
  child.stdin.end();
  assert.deepStrictEqual(await exited, [0, null]);
}));

test('connect: many requests, and nine megabytes', limit, withProject(async (connection) => {
  const calls = [];
  for (let number = 0; number < 500; number += 1) calls.push(connection.sendRequest('describeMethods'));
  assert.strictEqual((await Promise.all(calls)).length, 500);
  assert.ok((await connection.sendRequest('ping', { text: 'é'.repeat(4_500_000) })).pong);
  assert.strictEqual((await refusal(connection.sendRequest('frobnicate'))).code, rpc.ErrorCodes.MethodNotFound);
}));

test('connect: the end of the daemon closes the connection', limit, withProject(async (connection, { exited }) => {
  const closed = new Promise((resolve) => { connection.onClose(resolve); });
  await connection.sendRequest('daemon.stop');
  assert.deepStrictEqual(await exited, [3, null]);
  await closed;
}));
