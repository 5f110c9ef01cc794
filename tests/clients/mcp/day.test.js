// An agent's day, with the real SDK: find a name, read it, change the file, ask what is wrong, run the tests as a task,
// lose the door and the daemon in the middle, come back with another door, and read the rest.

'use strict';

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const { test } = require('node:test');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { CallToolResultSchema } = require('@modelcontextprotocol/sdk/types.js');
const { eventually, isRunning, patience, withProject } = require('./project.js');

const options = { timeout: patience };
const source = `#include <string>

/// Counts the letters of a name.
int greet(const std::string& name) {
  return static_cast<int>(name.size());
}

int main() {
  return greet("world") == 5 ? 0 : 1;
}
`;

async function connect(project) {
  const client = new Client({ name: 'agent', version: '1' }, { capabilities: {} });
  const transport = new StdioClientTransport(project.server());
  await client.connect(transport, options);
  await client.listTools({}, options);
  const call = async (name, args = {}) => {
    const result = await client.callTool({ name, arguments: args }, CallToolResultSchema, options);
    assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
    return result.structuredContent;
  };
  return { client, transport, call };
}

test("an agent's day", { timeout: 600_000 },
  withProject(async (project) => {
    const main = project.write('src/main.cpp', source);
    project.write('compile_commands.json', JSON.stringify(
      [{ directory: project.root, file: 'src/main.cpp', command: 'g++ -std=c++17 -c src/main.cpp' }]));
    const morning = await connect(project);

    const ready = async (tool, args) => eventually(async () => {
      const answer = await morning.call(tool, args);
      return answer.fresh && answer.complete ? answer : undefined;
    });
    await ready('code_symbols', { file: 'src/main.cpp' });
    const found = await ready('code_symbols', { query: 'greet' });
    assert.deepStrictEqual(found.symbols.map((symbol) => symbol.path), ['greet']);

    const read = await ready('code_definition', { symbol: found.symbols[0].path });
    assert.match(read.definitions[0].text, /return static_cast<int>\(name\.size\(\)\);/);
    assert.match(read.hover, /Counts the letters of a name/);

    execFileSync('sed', ['-i', 's/name.size()/nme.size()/', main]);
    const wrong = await ready('code_diagnostics', { files: ['src/main.cpp'], wait_seconds: 30 });
    assert.strictEqual(wrong.errors, 1);
    assert.match(wrong.files[0].diagnostics[0].message, /nme/);
    execFileSync('sed', ['-i', 's/nme.size()/name.size()/', main]);
    const right = await ready('code_diagnostics', { files: 'src/main.cpp', wait_seconds: 30 });
    assert.strictEqual(right.errors, 0);

    project.makeGate();
    const tests = await morning.call('task_run',
      { prompt: 'echo first half; read x < gate; echo second half; exit 9', key: 'the tests', wait_seconds: 0 });
    await eventually(async () => (await morning.call('task_output', { task_id: tests.task_id })).output === 'first half\n');

    process.kill(morning.transport.pid, 'SIGKILL');
    const first = project.daemonPid();
    await project.killDaemon();
    assert.ok(!isRunning(first));

    const evening = await connect(project);
    const [ended] = await Promise.all([evening.call('task_get', { task_id: tests.task_id, wait_seconds: 50 }), project.openGate()]);
    assert.strictEqual(ended.state, 'failed');
    assert.strictEqual(ended.exit_code, 9);
    assert.strictEqual(ended.attempts, 1);
    const rest = await evening.call('task_output', { task_id: tests.task_id, cursor: '11' });
    assert.strictEqual(rest.output, 'second half\n');
    assert.strictEqual(rest.done, true);
    assert.notStrictEqual(project.daemonPid(), first);
    await evening.client.close();
    await morning.client.close();
  }));
