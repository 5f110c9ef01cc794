// The protocol's own conformance suite against a test build (with the suite's fixtures): its door on stdio, over
// http_adapter.js, and its daemon's own `/mcp`.

'use strict';

const assert = require('node:assert');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Adapter } = require('./http_adapter.js');
const { withProject } = require('./project.js');
const { TokenProxy } = require('./token_proxy.js');

const suite = path.join(process.env.NODE_PATH, '@modelcontextprotocol/conformance/dist/index.js');

/** Runs the suite with WORDS; what it said, and the checks of each scenario by its name. */
async function runSuite(url, place, ...words) {
  const results = fs.mkdtempSync(path.join(place, 'results-'));
  const { code, text } = await new Promise((resolve) => {
    execFile(process.execPath, [suite, 'server', '--url', url, '--output-dir', results, ...words],
      { cwd: place, maxBuffer: 1 << 26, timeout: 540_000 },
      (error, stdout, stderr) => resolve({ code: error ? error.code ?? 1 : 0, text: stdout + stderr }));
  });
  const checks = new Map();
  for (const folder of fs.readdirSync(results)) {
    const name = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
    checks.set(name, JSON.parse(fs.readFileSync(path.join(results, folder, 'checks.json'), 'utf8')));
  }
  return { code, text, checks };
}

function readBaseline(file) {
  const entries = fs.readFileSync(file, 'utf8').split('\n').filter((line) => line.startsWith('  - ')).map((line) => line.slice(4));
  return (scenario, check) => entries.includes(scenario) || entries.includes(`${scenario}:${check}`);
}

/** Every check that failed though the baseline does not name it, as `scenario:check: why`. */
function surprises(checks, isExpected) {
  return [...checks].flatMap(([scenario, all]) => all
    .filter((check) => ['FAILURE', 'WARNING'].includes(check.status) && !isExpected(scenario, check.id))
    .map((check) => `${scenario}:${check.id}: ${check.errorMessage}`));
}

const taskScenarios = ['tasks-lifecycle', 'tasks-capability-negotiation', 'tasks-wire-fields', 'tasks-request-state-removal',
  'tasks-request-headers', 'tasks-dispatch-and-envelope', 'tasks-required-task-error'];

/** Nothing fails at URL but what the baseline names, and the scenarios of TASKS have passed. */
async function conforms(project, url, revision, tasks) {
  const baseline = path.join(__dirname, `baseline-${revision}.yml`);
  const { code, text, checks } = await runSuite(url, project.place, '--requirements', revision, '--expected-failures', baseline);
  assert.ok(checks.size > 30, text);
  assert.deepStrictEqual(surprises(checks, readBaseline(baseline)), []);
  assert.strictEqual(code, 0, text.slice(text.indexOf('=== SUMMARY')));
  const wire = [...checks.values()].flat().filter((check) => check.id === 'wire-schema-valid');
  assert.ok(wire.length > 20 && wire.every((check) => check.status === 'SUCCESS'), JSON.stringify(wire));
  for (const scenario of tasks) {
    const passed = checks.get(scenario)?.filter((check) => check.status === 'SUCCESS') ?? [];
    assert.ok(passed.length > 1, `${scenario} passed`);
  }
}

async function withServer(server, body) {
  const url = await server.listen();
  try {
    await body(url);
  } finally {
    await server.close();
  }
}

for (const [revision, tasks] of [['2025-11-25', []], ['2026-07-28', taskScenarios]]) {
  test(`conformance, requirements of ${revision}`, { timeout: 600_000 }, withProject(async (project) => {
    const server = project.server();
    const adapter = new Adapter({ ...server, env: { ...server.env, DUET_RPC_MCP_FIXTURES: '1' } });
    await withServer(adapter, (url) => conforms(project, url, revision, tasks));
  }));
}

test('conformance of the daemon\'s own door', { timeout: 600_000 }, withProject(async (project) => {
  project.env.DUET_RPC_MCP_FIXTURES = '1';
  project.setUser('default_agent = "shell"\n[mcp]\nagents = ["shell"]\n');
  project.run('daemon', 'start', '--http');
  const { url } = JSON.parse(project.run('call', 'daemon.status')).subsystems.http;
  const token = project.run('token', 'new', 'suite').trim();
  await withServer(new TokenProxy(url, token), (proxied) => conforms(project, proxied, '2026-07-28', taskScenarios));
}));
