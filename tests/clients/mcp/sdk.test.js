// @modelcontextprotocol/sdk 1.x, which most clients of today are built on, talks to `duet-rpc mcp`.
//
//   NODE_PATH=build/mcp/node_modules DUET_RPC_PROGRAM=… node launch.js 18 sdk.test.js

'use strict';

const assert = require('node:assert');
const { test } = require('node:test');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { CallToolResultSchema, ResourceUpdatedNotificationSchema } = require('@modelcontextprotocol/sdk/types.js');
const { eventually, patience, withProject } = require('./project.js');

const limit = { timeout: 600_000 };
const options = { timeout: patience };

/** A connected client; REVISION replaces the one that it would ask for. */
async function connect(project, revision, ...words) {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: {} });
  const transport = new StdioClientTransport(project.server(...words));
  if (revision) {
    const send = transport.send.bind(transport);
    transport.send = (message) => {
      if (message.method === 'initialize') message.params.protocolVersion = revision;
      return send(message);
    };
  }
  const errors = [];
  client.onerror = (error) => errors.push(error);
  await client.connect(transport, options);
  return { client, transport, errors };
}

/** The structured result of a call that must succeed; the SDK has checked it against the tool's schema. */
async function call(client, name, args = {}, more = {}) {
  const result = await client.callTool({ name, arguments: args }, CallToolResultSchema, { ...options, ...more });
  assert.ok(!result.isError, JSON.stringify(result.content));
  assert.strictEqual(result.content.length, 1);
  return result.structuredContent;
}

for (const revision of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
  test(`revision ${revision}: every tool that needs no language server`, limit, withProject(async (project) => {
    const { client, errors } = await connect(project, revision);
    assert.strictEqual(client.getServerVersion().name, 'duet-rpc');
    const { tools } = await client.listTools({}, options);
    assert.strictEqual(tools.length, 10);
    const task = await call(client, 'task_run', { prompt: 'echo hello', wait_seconds: 50 });
    assert.strictEqual(task.tail, 'hello\n');
    assert.strictEqual((await call(client, 'task_get', { task_id: task.task_id })).exit_code, 0);
    assert.strictEqual((await call(client, 'task_output', { task_id: task.task_id })).output, 'hello\n');
    assert.strictEqual((await call(client, 'task_list')).counts.completed, 1);
    assert.strictEqual((await call(client, 'task_cancel', { task_id: task.task_id })).cancelled, false);
    assert.strictEqual((await call(client, 'project_status', { since: 0 })).daemon.running, true);
    assert.strictEqual((await client.listResources({}, options)).resources.length, 2);
    assert.strictEqual((await client.listResourceTemplates({}, options)).resourceTemplates.length, 2);
    const read = await client.readResource({ uri: `duet://tasks/${task.task_id}/output` }, options);
    assert.match(read.contents[0].text, /\nhello\n$/);
    await assert.rejects(client.readResource({ uri: 'duet://nothing' }, options), { code: -32002 });
    await client.close();
    assert.deepStrictEqual(errors, []);
  }));
}

test('calls run side by side, and a wait delays nobody', limit, withProject(async (project) => {
  const { client } = await connect(project);
  const slow = await call(client, 'task_run', { prompt: 'sleep 1000', wait_seconds: 0 });
  const waiting = client.callTool({ name: 'task_get', arguments: { task_id: slow.task_id, wait_seconds: 50 } },
    CallToolResultSchema, options);
  const answers = await Promise.all(Array.from({ length: 64 }, () => call(client, 'task_get', { task_id: slow.task_id })));
  assert.ok(answers.every((answer) => answer.task_id === slow.task_id));
  await call(client, 'task_cancel', { task_id: slow.task_id });
  assert.strictEqual((await waiting).structuredContent.state, 'cancelled');
  await client.close();
}));

test('progress is told, and a cancel ends the call but not the task', limit, withProject(async (project) => {
  const { client } = await connect(project);
  const told = [];
  const abort = new AbortController();
  const running = call(client, 'task_run', { prompt: 'sleep 1000', wait_seconds: 50 },
    { onprogress: (progress) => told.push(progress), signal: abort.signal });
  await eventually(() => told.some(({ message }) => /^task-1 /.test(message)));
  abort.abort('enough');
  await assert.rejects(running);
  assert.ok(told.every(({ total }) => total === 50), JSON.stringify(told));
  assert.ok(told.every(({ progress }, place) => place === 0 || progress > told[place - 1].progress), JSON.stringify(told));
  assert.strictEqual((await call(client, 'task_get', { task_id: 'task-1' })).state, 'running');
  await client.close();
}));

test('experimental/tasks: a call becomes a task that is polled to its result', limit, withProject(async (project) => {
  const { client } = await connect(project);
  await client.listTools({}, options);
  const stream = client.experimental.tasks.callToolStream(
    { name: 'task_run', arguments: { prompt: 'echo one; sleep 2; exit 3' } }, CallToolResultSchema, { ...options, task: { ttl: 1000 } });
  const kinds = new Set();
  let result;
  let taskId;
  for await (const message of stream) {
    kinds.add(message.type);
    if (message.type === 'taskCreated') taskId = message.task.taskId;
    if (message.type === 'result') result = message.result;
  }
  assert.ok(kinds.has('taskCreated'), [...kinds]);
  const later = await client.experimental.tasks.getTask(taskId, options);
  assert.strictEqual(later.status, 'failed');
  result ??= await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, options);
  assert.strictEqual(result.structuredContent.exit_code, 3);
  await client.close();
}));

test('subscriptions tell of changes', limit, withProject(async (project) => {
  const { client } = await connect(project);
  const updated = [];
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (message) => updated.push(message.params.uri));
  await call(client, 'project_status');
  await client.subscribeResource({ uri: 'duet://tasks' }, options);
  await call(client, 'task_run', { prompt: 'true', wait_seconds: 50 });
  await eventually(() => updated.includes('duet://tasks'));
  await client.unsubscribeResource({ uri: 'duet://tasks' }, options);
  await client.close();
}));
