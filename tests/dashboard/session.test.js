// Who gets in, and what a role is offered. What other origins get stands in tests/doors/hostile_origin.py.

'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {Project, eventually, launch, live, newContext, offlineWords, open, signIn} = require('./browser.js');

let browser;
let project;

before(async () => {
  browser = await launch();
  project = new Project('[agents.echo]\ncommand = ["echo", "{prompt}"]\n[[rules]]\nid = "watch"\ntrigger = { source = "task", type = "task.failed" }\naction = { type = "notify", message = "x" }\n');
  project.start('--http');
});
after(async () => {
  await browser.close();
  project.close();
});

test('the login link signs in, and leaves nothing in the address bar or the history', async () => {
  const context = await newContext(browser);
  const page = await context.newPage();
  const requests = [];
  page.on('request', (request) => requests.push(`${request.url()} ${JSON.stringify(request.headers())}`));
  const url = project.loginUrl();
  const code = url.split('#login=')[1];
  await page.goto(url);
  await live(page);
  assert.equal(await page.evaluate(() => location.hash.includes('login')), false);
  const session = await context.newCDPSession(page);
  const {entries} = await session.send('Page.getNavigationHistory');
  assert.deepEqual(entries.filter((entry) => entry.url.includes(code)), []);
  assert.deepEqual(requests.filter((text) => text.includes(code)), []);
  await page.reload();
  await live(page);
  assert.match(await page.title(), /^Tasks · project/);
  context.assertSilent();
  await context.close();
});

test('without a link the page says how to get one, and takes a pasted link or code', async () => {
  const context = await newContext(browser);
  const page = await context.newPage();
  const url = project.loginUrl();
  await page.goto(url.split('#')[0]);
  await page.waitForSelector('html[data-connection="signed-out"] main[data-view="sign-in"]');
  await page.getByText('duet-rpc dashboard', {exact: true}).waitFor();
  const field = page.getByLabel('Login link or code');
  await field.fill('rubbish');
  await page.getByRole('button', {name: 'Sign in'}).click();
  await page.getByText('This is no login link').waitFor();
  await field.fill(url);
  await page.getByRole('button', {name: 'Sign in'}).click();
  await live(page);
  context.assertSilent();
  const other = await newContext(browser);
  const second = await other.newPage();
  await second.goto(url.split('#')[0]);
  await second.getByLabel('Login link or code').fill(project.loginUrl().split('#login=')[1]);
  await second.getByLabel('Login link or code').press('Enter');
  await live(second);
  other.assertSilent();
  await Promise.all([context.close(), other.close()]);
});

test('a link that was used ends the session that it had made, and says so', async () => {
  const first = await newContext(browser);
  const page = await first.newPage();
  const url = project.loginUrl();
  await page.goto(url);
  await live(page);
  const second = await newContext(browser);
  const thief = await second.newPage();
  await thief.goto(url);
  await thief.getByText('This link was used before').waitFor();
  await page.waitForSelector('html[data-connection="signed-out"]');
  first.assertSilent();
  second.assertSilent(/401/);
  await Promise.all([first.close(), second.close()]);
});

test('a wrong link leaves who is signed in as he is, in all tabs', async () => {
  const context = await newContext(browser);
  const page = await signIn(context, project);
  const other = await context.newPage();
  for (const code of ['zzz', 'A'.repeat(22)]) {
    await other.goto(`${page.url().split('#')[0]}#login=${code}`);
    await live(other);
    await other.goto('about:blank');
  }
  await live(page);
  assert.notEqual(await page.evaluate(() => localStorage.getItem('duet-rpc.token')), null);
  context.assertSilent(/401/);
  await context.close();
});

test('at the TLS door the certificate says who it is, and there is nothing to sign out of', async () => {
  const far = new Project();
  try {
    far.run('cert', 'init', '127.0.0.1');
    const identity = path.join(far.place, 'me.pem');
    fs.writeFileSync(identity, far.run('cert', 'client', 'me', '--role', 'operate'), {mode: 0o600});
    far.start('--tls=127.0.0.1:0');
    const origin = `https://${far.call('daemon.status').subsystems.tls.address}`;
    const context = await newContext(browser, {ignoreHTTPSErrors: true,
      clientCertificates: [{origin, certPath: identity, keyPath: identity}]});
    const page = await context.newPage();
    await page.goto(`${origin}/`);
    await live(page);
    await page.getByText('me · operate').waitFor();
    assert.equal(await page.getByRole('button', {name: 'Sign out'}).count(), 0);
    const id = far.shell('true');
    await page.locator(`[data-task="${id}"]`).waitFor();
    await page.goto(`${origin}/#login=${'A'.repeat(22)}`);
    await live(page);
    context.assertSilent(/404/);
    await context.close();
  } finally {
    far.close();
  }
});

test('Sign out ends the token in all tabs', async () => {
  const context = await newContext(browser);
  const page = await signIn(context, project);
  const other = await context.newPage();
  await other.goto(page.url());
  await live(other);
  await page.getByRole('button', {name: 'Sign out'}).click();
  for (const tab of [page, other]) {
    await tab.waitForSelector('html[data-connection="signed-out"]');
    assert.equal(await tab.locator('[data-task]').count(), 0);
  }
  assert.equal(await page.evaluate(() => localStorage.getItem('duet-rpc.token')), null);
  await page.reload();
  await page.waitForSelector('html[data-connection="signed-out"]');
  context.assertSilent();
  await context.close();
});

test('Sign out works while the daemon hangs, leaves no dialog, and says that the daemon did not hear of it', async () => {
  const own = new Project('[agents.echo]\ncommand = ["echo", "{prompt}"]\n');
  own.start('--http');
  const context = await newContext(browser);
  try {
    const page = await signIn(context, own);
    await page.evaluate(() => sessionStorage.setItem('duet-rpc.draft', '{"prompt":"secret"}'));
    process.kill(own.pid, 'SIGSTOP');
    await page.getByRole('button', {name: 'Sign out'}).click();
    await page.waitForSelector('html[data-connection="signed-out"]');
    assert.deepEqual(await page.evaluate(() => [localStorage.getItem('duet-rpc.token'), sessionStorage.getItem('duet-rpc.draft')]), [null, null]);
    await page.getByText('the daemon did not hear of it').waitFor();
    process.kill(own.pid, 'SIGCONT');
    const again = await signIn(context, own);
    await again.getByRole('button', {name: 'Settings'}).click();
    await again.getByRole('dialog').waitFor();
    own.run('token', 'revoke', '--all');
    await again.waitForSelector('html[data-connection="signed-out"]');
    assert.equal(await again.getByRole('dialog').count(), 0);
  } finally {
    process.kill(own.pid, 'SIGCONT');
    await context.close();
    own.close();
  }
});

test('a token that is revoked leads back to signing in, also while the daemon was away', async () => {
  const context = await newContext(browser);
  const page = await signIn(context, project);
  const name = await page.locator('.who').textContent();
  project.run('token', 'revoke', name.split(' ')[0]);
  await page.waitForSelector('html[data-connection="signed-out"] main[data-view="sign-in"]');
  context.assertSilent();
  const second = await signIn(await newContext(browser), project);
  const other = (await second.locator('.who').textContent()).split(' ')[0];
  project.kill();
  await second.waitForSelector('html[data-connection="reconnecting"]');
  project.start('--http');
  await live(second);
  project.run('token', 'revoke', other);
  await second.waitForSelector('html[data-connection="signed-out"]');
  second.context().assertSilent(offlineWords);
  await Promise.all([context.close(), second.context().close()]);
});

for (const [role, words, may, mayNot] of [
  ['observe', ['--read-only'], [], ['Submit task', /^Cancel task/, /^Hold/, 'Pause queue']],
  ['own', [], ['Submit task', /^Cancel task/, /^Hold/], []],
]) {
  test(`the role ${role} is told, and offered what it may do`, async () => {
    const id = project.shell('sleep 30', '--delay', '1h');
    const context = await newContext(browser);
    const page = await signIn(context, project, ...words);
    await page.waitForSelector(`html[data-role="${role}"]`);
    await open(page, `#/tasks/${id}`);
    await page.waitForSelector('main[data-view="task"] [data-state="queued"]');
    for (const name of may) await page.getByRole('button', {name}).first().waitFor();
    for (const name of mayNot) assert.equal(await page.getByRole('button', {name}).count(), 0, String(name));
    await open(page, '#/rules');
    await page.waitForSelector('[data-rule="watch"]');
    assert.equal(await page.getByRole('switch').count(), role === 'observe' ? 0 : 2);
    project.run('task', 'cancel', id);
    context.assertSilent();
    await context.close();
  });
}

test('the role operate steers, and cannot say what runs', async () => {
  const id = project.shell('sleep 30', '--delay', '1h');
  const token = project.run('token', 'new', 'steering', '--role', 'operate').toString().trim();
  const context = await newContext(browser);
  await context.addInitScript((text) => location.protocol === 'http:' && localStorage.setItem('duet-rpc.token', text), token);
  const page = await context.newPage();
  await page.goto(project.call('daemon.status').subsystems.http.url);
  await live(page);
  await page.waitForSelector(`html[data-role="operate"] [data-task="${id}"]`);
  assert.equal(await page.getByRole('button', {name: 'Submit task'}).count(), 0);
  await page.getByRole('button', {name: 'Pause queue'}).click();
  await eventually(() => assert.equal(project.call('queue.status').paused, true));
  await page.getByRole('button', {name: 'Resume queue'}).click();
  await eventually(() => assert.equal(project.call('queue.status').paused, false));
  await page.getByRole('button', {name: `Cancel ${id}`}).click();
  await page.getByRole('dialog').getByRole('button', {name: `Cancel ${id}`}).click();
  await eventually(() => assert.equal(project.record(id).state, 'cancelled'));
  project.run('token', 'revoke', 'steering');
  context.assertSilent();
  await context.close();
});

test('what the page thinks each role may call is what the daemon lets it call', async () => {
  const {mayCall} = await import(path.join(__dirname, '..', '..', 'web', 'roles.js'));
  const {methods} = project.call('rpc.discover');
  const ranks = ['observe', 'operate', 'own'];
  const differs = [];
  for (const method of methods) {
    const needs = method['x-needs'] ?? 'own';
    if (needs === 'unix') continue;
    for (const role of ranks) {
      if (mayCall(role, method.name) !== ranks.indexOf(role) >= ranks.indexOf(needs)) differs.push(`${role} ${method.name} needs ${needs}`);
    }
  }
  assert.deepEqual(differs, []);
});

test('the page asks for every kind of event that there is, but output', async () => {
  const {eventKinds} = await import(path.join(__dirname, '..', '..', 'web', 'state.js'));
  const client = project.connect();
  const refused = await client.batch([{method: 'events.subscribe', params: {kinds: ['nonsense']}}]).then(() => null, (error) => JSON.parse(error.message));
  client.close();
  assert.deepEqual(refused.data.accepted.filter((kind) => kind !== 'taskOutput').sort(), [...eventKinds].sort());
});

test('another version of the page is offered', async () => {
  const context = await newContext(browser);
  const page = await context.newPage();
  let assets = 'one';
  await page.routeWebSocket(/\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((text) => socket.send(String(text).replace(/"assets":"[^"]*"/, `"assets":"${assets}"`)));
  });
  await page.goto(project.loginUrl());
  await live(page);
  assert.equal(await page.getByRole('button', {name: /reload/}).count(), 0);
  assets = 'two';
  project.kill();
  project.start('--http');
  await page.getByRole('button', {name: /reload/}).waitFor();
  await context.close();
});

test('the first paint waits for the styles alone, and every file is asked for by the page itself', async () => {
  const context = await newContext(browser);
  const page = await context.newPage();
  const waiting = [];
  await page.route(/\/assets\/(?!theme).*\.js$/, (route) => waiting.push(route));
  await page.goto(project.call('daemon.status').subsystems.http.url, {waitUntil: 'commit'});
  await page.getByRole('heading', {name: 'Opening'}).waitFor();
  await eventually(async () => assert.equal(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint').length), 1));
  const asked = await page.evaluate(() => document.querySelectorAll('link[rel=modulepreload]').length);
  await eventually(() => assert.equal(new Set(waiting.map((route) => route.request().url())).size, asked));
  let isLate = false;
  page.on('request', (request) => (isLate ||= request.url().endsWith('.js')));
  await Promise.all(waiting.map((route) => route.fallback()));
  await page.waitForSelector('main[data-view="sign-in"]');
  assert.equal(isLate, false, 'a module that the page does not name');
  context.assertSilent();
  await context.close();
});

test('the source has nothing that makes code or markup out of text, and no other address', () => {
  const folder = path.join(__dirname, '..', '..', 'web');
  const files = fs.readdirSync(folder, {recursive: true}).map(String).filter((name) => /\.(js|css|html|svg)$/.test(name) && !name.includes('.test.'));
  const bad = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|setAttribute\('(style|on)|javascript:|DOMParser|createContextualFragment|document\.cookie/;
  const elsewhere = /\b(https?|wss?):\/\/(?!www\.w3\.org\/2000\/svg)[a-z]/;
  let total = 0;
  for (const name of files) {
    const text = fs.readFileSync(path.join(folder, name), 'utf8');
    total += Buffer.byteLength(text);
    assert.doesNotMatch(text, bad, name);
    assert.doesNotMatch(text, elsewhere, name);
    assert.ok(text.split('\n').length <= 401, `${name} has more than 400 lines`);
    if (name.endsWith('.html')) assert.doesNotMatch(text, /\sstyle=|\son\w+=|<script>/, name);
  }
  assert.ok(total <= 300 * 1024, `${total} bytes`);
  const listed = fs.readFileSync(path.join(folder, 'index.html'), 'utf8');
  for (const name of files.filter((one) => one.endsWith('.js'))) assert.ok(listed.includes(`/assets/${name}"`), `index.html does not load ${name} at once`);
});

test('logs, state files and the tokens file hold no token and no code', async () => {
  const context = await newContext(browser);
  const url = project.loginUrl();
  const page = await context.newPage();
  await page.goto(url);
  await live(page);
  const token = await page.evaluate(() => localStorage.getItem('duet-rpc.token'));
  const secrets = [token, token.slice(5), url.split('#login=')[1]];
  const folder = path.join(project.root, '.aiwg', 'daemon');
  await eventually(async () => assert.match(fs.readFileSync(path.join(folder, 'daemon.log'), 'latin1'), /daemon/));
  for (const name of fs.readdirSync(folder)) {
    if (!fs.statSync(path.join(folder, name)).isFile()) continue;
    const text = fs.readFileSync(path.join(folder, name), 'latin1');
    for (const secret of secrets) assert.equal(text.includes(secret), false, name);
  }
  await context.close();
});
