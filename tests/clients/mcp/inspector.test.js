// The command line of the MCP inspector lists, calls and reads.

'use strict';

const assert = require('node:assert');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const { test } = require('node:test');
const { patience, program, withProject } = require('./project.js');

const run = promisify(execFile);
const modules = process.env.NODE_PATH.split(':')
  .find((folder) => fs.existsSync(path.join(folder, '@modelcontextprotocol/inspector-cli/build/cli.js')));
const skip = modules ? false : 'not run: inspector-cli is not installed';

/** The package looks for the inspector's own package.json two folders above, as it is published beside it. */
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

test('list, call and read', { timeout: 200_000, skip }, withProject(async (project) => {
  const cli = layOut(path.join(project.place, 'inspector'));
  const inspect = async (...words) => {
    const { stdout } = await run('node', [cli, '--cli', program, 'mcp', '--project', project.root, '--agents', 'shell', ...words],
      { cwd: project.root, env: project.env, timeout: patience, maxBuffer: 1 << 24 });
    return JSON.parse(stdout);
  };
  assert.strictEqual((await inspect('--method', 'tools/list')).tools.length, 10);
  const called = await inspect('--method', 'tools/call', '--tool-name', 'task_run', '--tool-arg', 'prompt=echo hello',
    '--tool-arg', 'wait_seconds=50');
  assert.strictEqual(called.structuredContent.tail, 'hello\n');
  const read = await inspect('--method', 'resources/read', '--uri', 'duet://tasks/task-1');
  assert.strictEqual(JSON.parse(read.contents[0].text).state, 'completed');
  assert.strictEqual((await inspect('--method', 'resources/templates/list')).resourceTemplates.length, 2);
}));
