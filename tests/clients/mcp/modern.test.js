// @modelcontextprotocol/client 2.x, in each of its ways to agree on a revision, and @modelcontextprotocol/ext-tasks on it.

'use strict';

const assert = require('node:assert');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { test } = require('node:test');
const { eventually, patience, withProject } = require('./project.js');

const limit = { timeout: 600_000 };
const options = { timeout: patience };
const revision = '2026-07-28';

const load = (name) => import(pathToFileURL(require.resolve(name)).href);

/** ext-tasks has no entry for require(). */
const loadTasks = () => import(
  pathToFileURL(path.join(process.env.NODE_PATH, '@modelcontextprotocol/ext-tasks/dist/client/index.js')).href);

async function connect(project, mode, capabilities = {}) {
  const { Client } = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  const client = new Client({ name: 'test', version: '1' },
    { capabilities, ...(mode ? { versionNegotiation: { mode } } : {}) });
  const transport = new StdioClientTransport(project.server());
  await client.connect(transport, options);
  return { client, transport };
}

for (const [name, mode] of [['default', undefined], ['auto', 'auto'], ['pinned', { pin: revision }]]) {
  test(`client 2.x, ${name}: lists, calls, reads`, limit, withProject(async (project) => {
    const { client } = await connect(project, mode);
    const { tools } = await client.listTools({}, options);
    assert.strictEqual(tools.length, 10);
    const result = await client.callTool({ name: 'task_run', arguments: { prompt: 'echo hello', wait_seconds: 50 } }, options);
    assert.strictEqual(result.structuredContent.tail, 'hello\n');
    const read = await client.readResource({ uri: 'duet://tasks/task-1' }, options);
    assert.strictEqual(JSON.parse(read.contents[0].text).state, 'completed');
    await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }, options));
    const error = await client.callTool({ name: 'task_get', arguments: { task_id: 'task-9' } }, options);
    assert.ok(error.isError);
    assert.match(error.content[0].text, /^not-found: .*\nTry: /);
    await client.close();
  }));
}

test('client 2.x, pinned: parallel calls, progress, and a cancel that ends the call but not the task', limit,
  withProject(async (project) => {
    const { client } = await connect(project, { pin: revision });
    const call = (name, args, more = {}) => client.callTool({ name, arguments: args }, { ...options, ...more });
    const told = [];
    const abort = new AbortController();
    const running = call('task_run', { prompt: 'sleep 1000', wait_seconds: 50 },
      { onprogress: (progress) => told.push(progress), signal: abort.signal });
    await eventually(() => told.some(({ message }) => /^task-1 /.test(message)));
    const answers = await Promise.all(Array.from({ length: 32 }, () => call('task_get', { task_id: 'task-1' })));
    assert.ok(answers.every((answer) => answer.structuredContent.state === 'running'));
    abort.abort('enough');
    await assert.rejects(running);
    assert.strictEqual((await call('task_get', { task_id: 'task-1' })).structuredContent.state, 'running');
    assert.strictEqual((await call('task_cancel', { task_id: 'task-1' })).structuredContent.cancelled, true);
    await client.close();
  }));

/** The way around the SDK's codecs that ext-tasks asks its host for. */
function rawDispatch(transport) {
  const waiting = new Map();
  const before = transport.onmessage;
  let last = 0;
  transport.onmessage = (message, extra) => {
    const done = waiting.get(message.id);
    if (!done || message.method) return before?.call(transport, message, extra);
    waiting.delete(message.id);
    done(message.error ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result });
  };
  return (request) => new Promise((resolve, reject) => {
    const id = `raw-${++last}`;
    waiting.set(id, resolve);
    transport.send({ jsonrpc: '2.0', ...request, id }).catch(reject);
  });
}

async function session(project, generation) {
  const tasks = await loadTasks();
  const capabilities = generation === 'v2' ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {};
  const { client, transport } = await connect(project, generation === 'v2' ? { pin: revision } : undefined, capabilities);
  const framing = { protocolVersion: revision, clientInfo: { name: 'test', version: '1' }, clientCapabilities: capabilities };
  const made = tasks.createTaskSessionFromClient(client, { endpointId: 'duet',
    ...(generation === 'v2' ? { rawDispatch: rawDispatch(transport), v2RequestFraming: framing } : {}) });
  const { tools } = await client.listTools({}, options);
  const declaration = tasks.toolDeclarationFromMcpTool(tools.find((tool) => tool.name === 'task_run'));
  return { client, transport, session: made, tasks, declaration };
}

for (const generation of ['v1', 'v2']) {
  test(`ext-tasks ${generation}: a task is resumed by another process after both were killed`, limit,
    withProject(async (project) => {
      project.makeGate();
      const first = await session(project, generation);
      const execution = await first.session.callTool('task_run', { prompt: 'echo one; read x < gate; echo two' },
        { declaration: first.declaration, task: { preference: 'prefer' } });
      assert.strictEqual(execution.kind, 'task');
      const reference = execution.serializeReference();
      assert.match(reference.taskId, /^task-1-[A-Za-z0-9]{26}$/);
      await eventually(async () => {
        const { structuredContent } = await first.client.callTool({ name: 'task_output', arguments: { task_id: 'task-1' } }, options);
        return structuredContent.output === 'one\n';
      });
      await execution.detach();
      process.kill(first.transport.pid, 'SIGKILL');
      await project.killDaemon();
      await first.client.close().catch(() => {});

      const second = await session(project, generation);
      const resumed = await second.session.resumeTask(reference);
      const [{ outcome }] = await Promise.all([resumed.settle(), project.openGate()]);
      const result = second.tasks.resultFromTaskOutcome(outcome);
      assert.strictEqual(result.structuredContent.tail, 'one\ntwo\n');
      await second.session.close();
      await second.client.close();
    }));
}

test('a listen of client 2.x tells of a task', limit, withProject(async (project) => {
  const { client, transport } = await connect(project, { pin: revision });
  const told = [];
  const before = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if (message.method?.startsWith('notifications/')) told.push(message);
    return before.call(transport, message, extra);
  };
  const meta = { 'io.modelcontextprotocol/protocolVersion': revision, 'io.modelcontextprotocol/clientCapabilities': {} };
  await transport.send({ jsonrpc: '2.0', id: 'listen', method: 'subscriptions/listen',
    params: { notifications: { resourceSubscriptions: ['duet://tasks'] }, _meta: meta } });
  await eventually(() => told[0]?.method === 'notifications/subscriptions/acknowledged');
  await client.callTool({ name: 'task_run', arguments: { prompt: 'true', wait_seconds: 50 } }, options);
  await eventually(() => told.some((message) => message.method === 'notifications/resources/updated'));
  await client.close();
}));
