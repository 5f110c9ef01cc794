// Real language servers through every tool about code, with the SDK's check of each result against its schema.
// The projects are those of tests/bridge/samples.

'use strict';

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { CallToolResultSchema } = require('@modelcontextprotocol/sdk/types.js');
const { eventually, patience, withProject } = require('./project.js');

const options = { timeout: patience };
const samples = path.join(__dirname, '../../bridge/samples');
const commands = path.join(__dirname, '../../../build/node_modules/.bin');
const PATH = `${process.env.PATH}:${commands}`;

const servers = [
  { name: 'clangd', sample: 'cpp', main: 'main.cpp', greeting: 'greeting.cpp', broken: 'broken.cpp', findsByName: true,
    references: ['greeting.cpp', 'greeting.h', 'main.cpp'], column: 10 },
  { name: 'pylsp', sample: 'python', main: 'main.py', greeting: 'greeting.py', broken: 'broken.py', findsByName: false,
    references: ['greeting.py', 'main.py', 'main.py'] },
  { name: 'typescript-language-server', sample: 'typescript', main: 'main.ts', greeting: 'greeting.ts', broken: 'broken.ts',
    findsByName: true, references: ['greeting.ts', 'main.ts', 'main.ts'], column: 65 },
];

/** Every text and number of a structured result is in the text, but for what says how far it goes. */
function assertSame(structured, text, where) {
  for (const [name, value] of Object.entries(structured)) {
    if (['fresh', 'complete', 'reason', 'next'].includes(name)) continue;
    if (typeof value === 'object') assertSame(value, text, where);
    else for (const line of String(value).split('\n')) assert.ok(text.includes(line.trim()), `${where}: ${name} ${line} in ${text}`);
  }
}

class Asker {
  async connect(project) {
    this.client = new Client({ name: 'languages', version: '1' }, { capabilities: {} });
    await this.client.connect(new StdioClientTransport(project.server()), options);
    await this.client.listTools({}, options);
    return this;
  }

  call(name, args) {
    return this.client.callTool({ name, arguments: args }, CallToolResultSchema, options);
  }

  /** The structured answer once it is fresh and complete, and as far as IS_IT says what is waited for. */
  ask(name, args, isIt = () => true) {
    return eventually(async () => {
      const result = await this.call(name, args);
      assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
      const { structuredContent } = result;
      if (!structuredContent.fresh || !structuredContent.complete || !isIt(structuredContent)) return undefined;
      assertSame(structuredContent, result.content[0].text, name);
      return structuredContent;
    });
  }

  async refused(name, args) {
    const result = await this.call(name, args);
    assert.ok(result.isError, JSON.stringify(result));
    assert.match(result.content[0].text, /^[a-z-]+: [^\n]+\nTry: [^\n]+$/);
    return result.content[0].text.split(':')[0];
  }
}

/** Where a word begins in a file, the last time if LAST: lines and characters from 1. */
function placeOf(project, file, word, last = false) {
  const lines = fs.readFileSync(path.join(project.root, file), 'utf8').split('\n');
  const has = (line) => new RegExp(`\\b${word}\\b`).test(line);
  const line = last ? lines.findLastIndex(has) : lines.findIndex(has);
  const column = [...lines[line].slice(0, lines[line].search(new RegExp(`\\b${word}\\b`)))].length;
  return { line: line + 1, column: column + 1 };
}

async function symbols(asker, server) {
  const { symbols: [found] } = await asker.ask('code_symbols', { file: server.greeting, query: 'greet' });
  assert.deepStrictEqual([found.path, found.kind, found.file], ['greet', 'function', server.greeting]);
  const outline = await asker.ask('code_symbols', { file: server.greeting, depth: '1' });
  assert.ok(outline.symbols.some((symbol) => symbol.path === 'greet' && symbol.end_line > symbol.line), JSON.stringify(outline));
  assert.strictEqual(outline.server, server.name);
  if (!server.findsByName) return assert.strictEqual(await asker.refused('code_symbols', { query: 'greet' }), 'no-server');
  return asker.ask('code_symbols', { query: 'greet' }, (answer) => answer.symbols.some((symbol) => symbol.path === 'greet'));
}

async function definition(asker, server, project) {
  const call = placeOf(project, server.main, 'greet', true);
  const source = fs.readFileSync(path.join(project.root, server.greeting), 'utf8');
  const isWhole = (answer) => answer.definitions.some((one) => one.file === server.greeting && one.end_line - one.line > 1);
  const places = [{ file: server.main, ...call }, { file: server.main, line: call.line, symbol: 'greet' },
    { file: `${server.main}:${call.line}:${call.column}` }, { file: server.greeting, symbol: 'greet' },
    ...(server.findsByName ? [{ symbol: 'greet' }] : [])];
  for (const place of places) {
    const answer = await asker.ask('code_definition', place, isWhole);
    const whole = answer.definitions.find((one) => one.file === server.greeting);
    assert.ok(source.includes(whole.text) && whole.text.includes('return'), JSON.stringify(answer));
    assert.match(answer.hover, /Counts the letters of a name/);
    if (place.line) assert.deepStrictEqual({ line: answer.at.line, column: answer.at.column }, call);
  }
  assert.strictEqual(await asker.refused('code_definition', { file: server.greeting, symbol: 'greeet' }), 'not-found');
}

async function references(asker, server, project) {
  const call = placeOf(project, server.main, 'greet', true);
  const found = await asker.ask('code_references', { file: server.greeting, symbol: 'greet' },
    (answer) => answer.count >= server.references.length);
  assert.deepStrictEqual(found.references.map((place) => place.file), server.references);
  const last = found.references.at(-1);
  assert.deepStrictEqual({ line: last.line, column: last.column }, call);
  assert.ok(found.references.every((place) => place.text.includes('greet')));
}

async function diagnostics(asker, server, project) {
  const args = { files: [server.broken, server.main], wait_seconds: 50 };
  const wrong = await asker.ask('code_diagnostics', args);
  assert.deepStrictEqual(wrong.files.map((file) => file.diagnostics.length), [1, 0], JSON.stringify(wrong));
  const [{ diagnostics: [finding] }] = wrong.files;
  assert.match(finding.message, /nowhere/);
  assert.deepStrictEqual([wrong.errors, finding.severity, finding.column], [1, 'error', server.column ?? finding.column]);
  execFileSync('sed', ['-i', 's/nowhere/1/', path.join(project.root, server.broken)]);
  const right = await asker.ask('code_diagnostics', args);
  assert.deepStrictEqual([right.errors, right.files[0].diagnostics], [0, []]);
}

for (const server of servers) {
  test(`${server.name} through the tools`, { timeout: 600_000 }, withProject(async (project) => {
    fs.cpSync(path.join(samples, server.sample), project.root, { recursive: true });
    if (server.sample === 'cpp') {
      const units = ['main.cpp', 'greeting.cpp', 'broken.cpp'];
      project.write('compile_commands.json', JSON.stringify(units.map((file) => (
        { directory: project.root, file, arguments: ['c++', '-I.', '-c', file] }))));
    }
    project.env.PATH = PATH;
    const asker = await new Asker().connect(project);
    await symbols(asker, server);
    await definition(asker, server, project);
    await references(asker, server, project);
    await diagnostics(asker, server, project);
    const { structuredContent: status } = await asker.call('project_status', {});
    assert.deepStrictEqual(status.language_servers.map(({ name, root }) => ({ name, root })),
      [{ name: server.name, root: project.root }]);
    await asker.client.close();
  }));
}
