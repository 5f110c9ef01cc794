// A project with its daemon and a real browser in front of it, for the tests of the dashboard. Every wait has a deadline.
//
// DUET_WEB names a folder whose files are served instead of those in the program: for work on the page without a build.

'use strict';

const assert = require('node:assert/strict');
const childProcess = require('node:child_process');
const crypto = require('node:crypto');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const {chromium} = require('playwright-core');

const program = process.env.DUET_RPC_PROGRAM;
const patience = 90000;  // for a machine on which everything else runs, too
const wide = {width: 1280, height: 800};
const narrow = {width: 360, height: 640};

/** The browser's own words about a daemon that is not there; the page cannot keep it from saying them. */
const offlineWords = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_SOCKET_NOT_CONNECTED|ERR_EMPTY_RESPONSE|Connection closed before|WebSocket connection to .* failed/;

class Project {
  constructor(settings = '', name = 'project') {
    this.place = fs.mkdtempSync(path.join(os.tmpdir(), 'duet-dashboard-'));
    this.root = path.join(this.place, name);
    fs.mkdirSync(path.join(this.root, '.git'), {recursive: true});
    fs.mkdirSync(path.join(this.place, 'home'));
    this.settings = path.join(this.place, 'config.toml');
    this.writeSettings(settings);
    this.environment = {...process.env, HOME: path.join(this.place, 'home'), DUET_RPC_CONFIG: this.settings,
      XDG_STATE_HOME: path.join(this.place, 'state'), XDG_CONFIG_HOME: path.join(this.place, 'config')};
    for (const name of ['DISPLAY', 'WAYLAND_DISPLAY', 'NO_COLOR', 'NOTIFY_SOCKET', 'LISTEN_FDS', 'LISTEN_PID']) delete this.environment[name];
  }

  writeSettings(text) {
    fs.writeFileSync(`${this.settings}.new`, text, {mode: 0o600});
    fs.renameSync(`${this.settings}.new`, this.settings);
  }

  /** Runs the program to its end; what it printed. */
  run(...words) {
    const done = childProcess.spawnSync(program, words, {cwd: this.root, env: this.environment, encoding: 'buffer', timeout: 2 * patience, maxBuffer: 1 << 28});
    if (done.status !== 0) throw new Error(`${words.join(' ')}: ${done.status} ${done.stderr}`);
    return done.stdout;
  }

  json(...words) {
    return JSON.parse(this.run(...words).toString());
  }

  call(method, params = {}) {
    return this.json('call', method, JSON.stringify(params));
  }

  /** The HTTP door is at a port that the system gives to nobody else while the daemon is away: tabs find it again. */
  rememberPort() {
    const folder = path.join(this.root, '.aiwg', 'daemon');
    const end = Number(fs.readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'latin1').split(/\s/)[0]);
    if (fs.existsSync(folder) || end <= 2048) return;
    fs.mkdirSync(folder, {recursive: true, mode: 0o700});
    fs.writeFileSync(path.join(folder, 'http.port'), `${crypto.randomInt(Math.floor(end / 2), end)}\n`, {mode: 0o600});
  }

  start(...words) {
    this.rememberPort();
    this.pid = this.json('daemon', 'start', '--json', ...words).pid;
    return this.pid;
  }

  kill() {
    process.kill(this.pid, 'SIGKILL');
    for (const deadline = Date.now() + patience; Date.now() < deadline && isRunning(this.pid);) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  }

  loginUrl(...words) {
    return this.run('dashboard', '--no-open', ...words).toString().trim();
  }

  shell(command, ...words) {
    return this.run('task', 'submit', '--agent', 'shell', ...words, '--', command).toString().trim();
  }

  wait(...ids) {
    childProcess.spawnSync(program, ['task', 'wait', ...ids], {cwd: this.root, env: this.environment, timeout: 2 * patience});
  }

  record(id) {
    return this.json('task', 'get', '--json', id);
  }

  /** A connection to the Unix socket, for many calls at once. */
  connect() {
    return new SocketClient(path.join(this.root, '.aiwg', 'daemon', 'daemon.sock'));
  }

  close() {
    childProcess.spawnSync(program, ['daemon', 'stop', '--force', '--if-running'], {cwd: this.root, env: this.environment, timeout: patience});
    if (this.pid && isRunning(this.pid)) process.kill(this.pid, 'SIGKILL');
    fs.rmSync(this.place, {recursive: true, force: true, maxRetries: 5});
  }
}

/** A message a line. */
class SocketClient {
  constructor(place) {
    this.socket = net.connect(place);
    this.calls = new Map();
    this.nextId = 1;
    let rest = '';
    this.socket.setEncoding('utf8');
    this.socket.on('data', (data) => {
      const lines = (rest + data).split('\n');
      rest = lines.pop();
      for (const line of lines) for (const message of [].concat(JSON.parse(line))) this.take(message);
    });
  }

  take(message) {
    const call = this.calls.get(message.id);
    this.calls.delete(message.id);
    if (call) (message.error ? call.reject(new Error(JSON.stringify(message.error))) : call.resolve(message.result));
  }

  /** All in one message; the answers in order. */
  batch(calls) {
    const messages = calls.map(({method, params}) => ({jsonrpc: '2.0', id: this.nextId++, method, params}));
    const answers = messages.map(({id}) => new Promise((resolve, reject) => this.calls.set(id, {resolve, reject})));
    this.socket.write(`${JSON.stringify(messages)}\n`);
    return Promise.all(answers);
  }

  close() {
    this.socket.destroy();
  }
}

function isRunning(pid) {
  try {
    return !/^\d+ \(.*\) Z/s.test(fs.readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

/** The tests run as root in a place of their own, where Chromium's sandbox cannot be set up. */
function launchOptions(options) {
  const isRoot = process.getuid() === 0;
  return {executablePath: process.env.DUET_CHROMIUM ?? '/usr/bin/chromium', chromiumSandbox: !isRoot,
    args: ['--disable-dev-shm-usage', '--disable-gpu', '--font-render-hinting=none', ...(options.args ?? []),
      // A page that comes out of a folder has no address, and is taken for one of the internet.
      ...(process.env.DUET_WEB ? ['--disable-features=LocalNetworkAccessChecks'] : [])]};
}

function launch(options = {}) {
  return chromium.launch(launchOptions(options));
}

/** One that can be put to sleep, as by the lid of a laptop: `sleep` stops all its processes, `wake` lets them go on. */
async function launchSleeper(options = {}) {
  const server = await chromium.launchServer(launchOptions(options));
  const signal = (name) => {
    for (const pid of withDescendants(server.process().pid)) {
      try {
        process.kill(pid, name);
      } catch (error) {
        if (error.code !== 'ESRCH') throw error;  // it has ended meanwhile
      }
    }
  };
  const browser = await chromium.connect(server.wsEndpoint());
  return {browser, sleep: () => signal('SIGSTOP'), wake: () => signal('SIGCONT'), close: () => server.close()};
}

/** A process and all that come from it, parents first. */
function withDescendants(pid) {
  const children = new Map();
  for (const name of fs.readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    let stat;
    try {
      stat = fs.readFileSync(`/proc/${name}/stat`, 'latin1');
    } catch {
      continue;  // it has ended meanwhile
    }
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found = [pid];
  for (const one of found) found.push(...(children.get(one) ?? []));
  return found;
}

/** A browser's profile of its own. What the console says is collected, and is to be nothing. */
async function newContext(browser, options = {}) {
  const context = await browser.newContext({viewport: wide, ...options});
  context.setDefaultTimeout(patience);
  const said = [];
  context.on('console', (message) => said.push(`${message.type()}: ${message.text()} (${message.location().url})`));
  context.on('weberror', (error) => said.push(`error: ${error.error().stack}`));
  if (process.env.DUET_WEB) await serveFolder(context, process.env.DUET_WEB);
  return Object.assign(context, {
    said,
    assertSilent(allowed = null) {
      assert.deepEqual(said.filter((text) => !allowed || !allowed.test(text)), []);
    },
  });
}

async function serveFolder(context, folder) {
  const types = {'.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.html': 'text/html'};
  await context.route((url) => url.pathname === '/' || url.pathname.startsWith('/assets/'), async (route) => {
    const name = new URL(route.request().url()).pathname.replace(/^\/(assets\/)?/, '') || 'index.html';
    const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
    await route.fulfill({body: fs.readFileSync(path.join(folder, name)), headers: {'content-type': `${types[path.extname(name)]}; charset=utf-8`, 'content-security-policy': csp}});
  });
}

/** A page that is signed in and live. */
async function signIn(context, project, ...words) {
  const page = await context.newPage();
  await page.goto(project.loginUrl(...words));
  await live(page);
  return page;
}

async function live(page) {
  await page.waitForSelector('html[data-connection="live"]');
}

/** Goes to a view by its address and waits until it is there. */
async function open(page, hash) {
  await page.evaluate((wanted) => (location.hash = wanted), hash);
  const view = /^#\/tasks\/./.test(hash) ? 'task' : /^#\/(\w+)/.exec(hash)[1];
  await page.waitForSelector(`main[data-view="${view}"]`);
}

/** Waits until CHECK passes. */
async function eventually(check, what = 'what was promised') {
  const deadline = Date.now() + patience;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`${what}: ${error.message}`, {cause: error});
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Axe finds nothing serious or critical. The page's own rules keep foreign code out, so it is put in by the debugger. */
async function assertAccessible(page, what) {
  const source = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', {expression: `if (!window.axe) { ${source} }`});
  const found = await page.evaluate(async () => {
    const result = await window.axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']});
    return result.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
        .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(' | ')}`);
  });
  await session.detach();
  assert.deepEqual(found, [], what);
}

/** Nothing of the page is wider than the window. */
async function assertNoSidewaysScroll(page, what) {
  const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(inner <= outer, `${what}: ${inner} px in ${outer} px`);
}

module.exports = {Project, assertAccessible, assertNoSidewaysScroll, eventually, isRunning, launch, launchSleeper, live, narrow, newContext, offlineWords, open,
  patience, signIn, wide};
