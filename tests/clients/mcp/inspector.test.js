// The command lines of both MCP inspectors list, call and read.

'use strict';

const assert = require('node:assert');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { test } = require('node:test');
const { patience, program, withProject } = require('./project.js');

const run = promisify(execFile);
const modules = process.env.NODE_PATH;

/** inspector-cli looks for the inspector's own package.json two folders above, as it is published beside it. */
function layOut(place) {
  const package_ = path.join(modules, '@modelcontextprotocol/inspector-cli');
  fs.mkdirSync(path.join(place, 'cli'), { recursive: true });
  fs.cpSync(path.join(package_, 'build'), path.join(place, 'cli/build'), { recursive: true });
  fs.copyFileSync(path.join(package_, 'package.json'), path.join(place, 'package.json'));
  fs.symlinkSync(modules, path.join(place, 'node_modules'));
  if (fs.existsSync(path.join(package_, 'node_modules'))) {
    fs.symlinkSync(path.join(package_, 'node_modules'), path.join(place, 'cli/node_modules'));
  }
  return path.join(place, 'cli/build/cli.js');
}

const versions = [
  { name: 'inspector-cli 1.0.3', words: [], find: (project) => layOut(path.join(project.place, 'inspector')) },
  ...['legacy', 'modern'].map((era) => ({ name: `inspector 2.12.0, ${era}`, words: ['--protocol-era', era],
    find: () => path.join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js') })),
];

for (const { name, words, find } of versions) {
  test(`${name}: list, call and read`, { timeout: 600_000 }, withProject(async (project) => {
    const cli = find(project);
    const server = [program, 'mcp', '--project', project.root, '--agents', 'shell'];
    const inspect = async (...more) => {
      const order = words.length > 0 ? ['--cli', ...words, ...more, '--', ...server] : ['--cli', ...server, ...more];
      const { stdout } = await run(process.execPath, [cli, ...order],
        { cwd: project.root, env: project.env, timeout: patience, maxBuffer: 1 << 24 });
      return JSON.parse(stdout);
    };
    assert.strictEqual((await inspect('--method', 'tools/list')).tools.length, 10);
    const called = await inspect('--method', 'tools/call', '--tool-name', 'task_run', '--tool-arg', 'prompt=echo hello',
      '--tool-arg', 'wait_seconds=50');
    assert.strictEqual(called.structuredContent.tail, 'hello\n');
    const read = await inspect('--method', 'resources/read', '--uri', 'duet://tasks/task-1');
    assert.strictEqual(JSON.parse(read.contents[0].text).state, 'completed');
  }));
}
