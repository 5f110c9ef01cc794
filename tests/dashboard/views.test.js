// Timeline, graph, events, rules, servers, health: live, and right.

'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const {after, before, beforeEach, test} = require('node:test');
const {Project, eventually, launch, live, newContext, offlineWords, open, signIn} = require('./browser.js');

const rules = `
[[rules]]
id = "ask"
trigger = { source = "task", type = "task.failed" }
conditions = [ { field = "payload.exitCode", operator = "eq", value = 9 } ]
action = { type = "agent", agent = "echo", prompt = "look at {{payload.taskId}}\\n\\nand then delete it" }
requires_approval = true
[[rules]]
id = "quiet"
trigger = { source = "schedule", cron = "0 3 * * *" }
action = { type = "notify", message = "good morning" }
`;
const server = path.join(__dirname, '..', 'fakes', 'language_server.py');
const settings = `max_running = 4
[agents.echo]
command = ["echo", "{prompt}"]
[lsp.fake]
command = ["python3", "${server}"]
files = ["*.fake"]
`;
let browser;
let project;
let context;
let page;

before(async () => {
  browser = await launch();
  project = new Project(settings + rules);
  project.start('--http');
  context = await newContext(browser);
  page = await signIn(context, project);
});
beforeEach(async () => {
  await page.goto(`${page.url().split('#')[0]}#/tasks`);
  await page.reload();
  await live(page);
  context.said.length = 0;
});
after(async () => {
  await browser.close();
  project.close();
});

test('timeline: bars are where the times say, a running one grows, Enter opens', async () => {
  const done = project.shell('sleep 1.2');
  const id = project.shell('sleep 600');
  project.wait(done);
  await open(page, '#/timeline?range=15m');
  const bar = page.locator(`[data-task="${done}"][data-state="completed"] .span.is-completed`);
  await bar.waitFor();
  const record = project.record(done);
  await eventually(async () => {
    const seen = await page.evaluate((task) => {
      const axis = document.querySelector('.axis');
      const box = axis.getBoundingClientRect();
      const span = document.querySelector(`[data-task="${task}"] .span.is-completed`).getBoundingClientRect();
      return {from: Number(axis.dataset.from), to: Number(axis.dataset.to), left: box.left, width: box.width, start: span.left, end: span.right};
    }, done);
    const place = (time) => seen.left + ((Date.parse(time) - seen.from) / (seen.to - seen.from)) * seen.width;
    assert.ok(Math.abs(seen.start - place(record.startedAt)) <= 2, `${seen.start} ${place(record.startedAt)}`);
    assert.ok(Math.abs(seen.end - Math.max(seen.start + 2, place(record.completedAt))) <= 2);
  });
  await page.evaluate((now) => (location.hash = `#/timeline?from=${new Date(now - 20000).toISOString()}&to=${new Date(now + 300000).toISOString()}`), Date.now());
  const running = page.locator(`[data-task="${id}"][data-state="running"] .span.is-running`);
  const width = () => running.evaluate((element) => element.getBoundingClientRect().width);
  const first = await width();
  await eventually(async () => assert.ok(await width() > first + 5));
  await page.getByRole('button', {name: 'Zoom in'}).click();
  const tooFar = await page.locator('.axis').evaluate((axis) => [...axis.children].filter((mark) => mark.textContent && mark.getBoundingClientRect().right > axis.getBoundingClientRect().right).length);
  assert.equal(tooFar, 0, 'times that are cut off');
  const zoomed = page.url();
  await page.getByRole('button', {name: 'Earlier'}).click();
  await eventually(() => assert.notEqual(page.url(), zoomed));
  assert.match(page.url(), /from=.*to=/);
  await page.getByRole('button', {name: '1h', exact: true}).click();
  const next = project.shell('true', '--after', done);
  await page.waitForSelector(`[data-task="${next}"]`);
  await page.keyboard.press('j');
  await eventually(async () => assert.match(page.url(), new RegExp(`task=${next}`)));
  await page.waitForSelector(`.arrow[data-from="${done}"][data-to="${next}"]`, {state: 'attached'});
  await page.getByRole('button', {name: /^Table/}).click();
  await page.getByRole('dialog').getByText(done, {exact: true}).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  const table = page.getByRole('button', {name: /^Table/});
  await eventually(async () => assert.ok(await table.evaluate((button) => document.activeElement === button)));
  await page.keyboard.press('k');
  await eventually(async () => assert.ok(await table.evaluate((button) => document.activeElement !== button)));
  await page.keyboard.press('Enter');
  await page.waitForSelector(`main[data-view="task"] [data-task="${next}"]`);
  project.run('task', 'cancel', id);
  context.assertSilent();
});

test('graph: every arrow points right, failures stand out, arrows move, focus narrows, and it is live', async () => {
  const first = project.shell('sleep 1; exit 1');
  const second = project.shell('true', '--after', first);
  const third = project.shell('true', '--after', second);
  await open(page, '#/graph');
  const node = (id, state = '') => page.locator(`.node[data-task="${id}"]${state}`);
  await node(third).waitFor();
  await node(first, '[data-state="failed"]').waitFor();
  await node(third, '[data-state="failed"].is-dependency').waitFor();
  const again = project.call('task.restart', {taskId: first}).taskId;
  await node(again).waitFor();
  await eventually(async () => {
    const wrong = await page.evaluate(() => [...document.querySelectorAll('[data-edge]')].filter((edge) => {
      const [from, to] = edge.dataset.edge.split(' ').map((id) => document.querySelector(`.node[data-task="${id}"]`).getBoundingClientRect());
      return from.right >= to.left;
    }).map((edge) => edge.dataset.edge));
    assert.deepEqual(wrong, []);
    assert.ok(await page.locator('[data-edge]').count() >= 3);
  });
  await node(first).locator('a').focus();
  await page.keyboard.press('ArrowRight');
  const focused = () => page.evaluate(() => document.activeElement.closest('[data-task]')?.dataset.task);
  assert.ok([second, again].includes(await focused()));
  await page.keyboard.press('ArrowLeft');
  assert.equal(await focused(), first);
  const lone = project.shell('true', '--after', project.shell('true'));
  await node(lone).waitFor();
  await page.getByRole('button', {name: `Focus ${second}`}).click();
  await node(lone).waitFor({state: 'detached'});
  assert.match(page.url(), new RegExp(`focus=${second}`));
  for (const id of [first, second, third]) await node(id).waitFor();
  await node(first).locator('a').press('Enter');
  await page.waitForSelector('main[data-view="task"]');
  context.assertSilent();
});

test('events: unbroken over kill -9, a pause loses nothing, filters, JSON', async () => {
  await open(page, '#/events');
  project.wait(project.shell('true'));
  await page.waitForSelector('[data-seq]');
  const own = await newContext(browser);
  const tab = await signIn(own, project);
  await open(tab, '#/events');
  await tab.waitForSelector('[data-seq]');
  await tab.getByRole('button', {name: 'Pause'}).click();
  const before = await tab.locator('[data-seq]').first().getAttribute('data-seq');
  project.wait(project.shell('true'));
  await tab.getByText(/Paused, \d+ events wait/).waitFor();
  assert.equal(await tab.locator('[data-seq]').first().getAttribute('data-seq'), before);
  const ids = [];
  for (let round = 0; round < 2; ++round) {
    project.kill();
    await tab.waitForSelector('html[data-connection="reconnecting"]');
    project.start('--http');
    ids.push(project.shell('true'), project.shell('exit 1'));
    await live(tab);
  }
  project.wait(...ids);
  const id = project.shell('echo the last');
  project.wait(id);
  await tab.getByRole('button', {name: 'Resume'}).click();
  await tab.locator('[data-kind="taskCompleted"]', {hasText: id}).waitFor();
  const newest = Number(await tab.locator('[data-seq]').first().getAttribute('data-seq'));
  const seen = new Set();
  await eventually(async () => {
    for (const seq of await tab.locator('[data-seq]').evaluateAll((rows) => rows.map((row) => Number(row.dataset.seq)))) seen.add(seq);
    await tab.locator('.scroller').evaluate((scroller) => (scroller.scrollTop += 300));
    assert.deepEqual([...seen].sort((a, b) => a - b), Array.from({length: newest}, (_, i) => i + 1));
  }, 'all numbers');
  assert.equal(await tab.locator('.is-gap').count(), 0);
  await tab.locator('.scroller').evaluate((scroller) => (scroller.scrollTop = 0));
  await tab.getByLabel('Kind').selectOption('taskFailed');
  await eventually(async () => assert.deepEqual([...new Set(await tab.locator('[data-seq]').evaluateAll((rows) => rows.map((row) => row.dataset.kind)))], ['taskFailed']));
  await tab.getByLabel('Kind').selectOption('');
  await tab.getByLabel('Filter by task').fill(id);
  await eventually(async () => assert.equal(await tab.locator('[data-seq]').count(), 3));
  await tab.getByRole('button', {name: /^JSON of event/}).first().click();
  await tab.getByRole('dialog').getByText('event.taskCompleted').waitFor();
  own.assertSilent(offlineWords);
  await own.close();
});

test('events: a gap is a line that says so, another epoch begins anew', async () => {
  const own = new Project(settings);
  own.start('--http');
  const other = await newContext(browser);
  const tab = await other.newPage();
  let answer = (text) => text;
  await tab.routeWebSocket(/\/ws$/, (socket) => {
    const daemon = socket.connectToServer();
    daemon.onMessage((text) => socket.send(answer(String(text))));
  });
  await tab.goto(own.loginUrl());
  await live(tab);
  own.wait(own.shell('true'));
  await open(tab, '#/events');
  await tab.locator('[data-kind="taskCompleted"]').waitFor();
  // The daemon says that it does not keep the next two events any more.
  answer = (text) => text.replace(/"next":(\d+)\}/, (all, next) => (Number(next) > 4 ? `"next":${next},"missed":true,"oldest":6}` : all));
  own.kill();
  own.start('--http');
  own.wait(own.shell('true'), own.shell('true'));
  await tab.locator('[data-gap="4-5"]').waitFor();
  await live(tab);
  answer = (text) => text;
  await open(tab, '#/tasks');
  await tab.waitForSelector('[data-task="task-3"]');
  own.kill();
  fs.rmSync(path.join(own.root, '.aiwg', 'daemon', 'tasks'), {recursive: true});
  for (const name of ['tasks.db', 'tasks.db-wal', 'tasks.db-shm']) fs.rmSync(path.join(own.root, '.aiwg', 'daemon', name), {force: true});
  own.start('--http');
  await live(tab);
  await tab.waitForSelector('[data-task="task-3"]', {state: 'detached'});
  await tab.getByText('No tasks yet').waitFor();
  other.assertSilent(offlineWords);
  await other.close();
  own.close();
});

test('rules: approvals come first and are counted, Approve fires once from two tabs, a switch moves in the other tab', async () => {
  await open(page, '#/rules');
  const second = await context.newPage();
  await second.goto(page.url());
  await live(second);
  await second.waitForSelector('[data-rule="ask"]');
  project.wait(project.shell('exit 9'));
  const firing = page.locator('.approval[data-firing]');
  await firing.waitFor();
  const id = await firing.getAttribute('data-firing');
  assert.match(await firing.locator('.would').textContent(), /echo: look at task-\d+\n\nand then delete it$/);
  await eventually(async () => assert.match(await page.title(), /^\(1\) /));
  assert.match(await page.locator('[data-nav="rules"]').textContent(), /1/);
  const buttons = [page, second].map((tab) => tab.getByRole('button', {name: `Approve ${id}`}));
  await Promise.all(buttons.map((one) => one.waitFor()));
  await Promise.all(buttons.map((one) => one.click({noWaitAfter: true, timeout: 20000}).catch(() => {})));
  await eventually(() => {
    const made = project.call('task.list', {limit: 100}).filter((task) => task.prompt.startsWith('look at '));
    assert.equal(made.length, 1);
    assert.equal(made[0].state, 'completed');
  });
  for (const tab of [page, second]) await tab.locator('.approval').waitFor({state: 'detached'});
  await page.locator(`.firings [data-firing="${id}"]`, {hasText: 'fired'}).waitFor();
  await page.getByRole('switch', {name: 'quiet'}).click();
  await second.waitForSelector('[data-rule="quiet"] [role=switch][aria-checked="false"]');
  await second.getByRole('switch', {name: 'quiet'}).click();
  await page.waitForSelector('[data-rule="quiet"] [role=switch][aria-checked="true"]');
  await page.getByRole('switch', {name: 'Automation'}).click();
  await second.getByText('Automation is off').waitFor();
  await page.getByRole('switch', {name: 'Automation'}).click();
  await second.getByText('Automation is on').waitFor();
  project.writeSettings(`${settings}${rules}[[rules]]\nid = "new"\ntrigger = { source = "daemon", type = "daemon.started" }\naction = { type = "notify", message = "<b>hello</b>" }\n`);
  await page.waitForSelector('[data-rule="new"]');
  await second.close();
  context.assertSilent();
});

test('servers: one that is killed shows restarting and ready again, and can be stopped', async () => {
  fs.writeFileSync(path.join(project.root, 'a.fake'), 'text\n');
  project.call('lsp.start', {server: 'fake'});
  await open(page, '#/servers');
  await page.waitForSelector('[data-server="fake"][data-state="ready"]');
  const next = (former) => eventually(() => {
    const [told] = project.call('lsp.list').servers;
    assert.equal(told.state, 'ready');
    assert.notEqual(told.pid, former);
    return told.pid;
  });
  let pid = await next(0);
  // Each crash in a row is followed by a longer pause: 8 seconds after the fourth.
  for (let crash = 1; crash < 4; ++crash) {
    process.kill(pid, 'SIGKILL');
    pid = await next(pid);
  }
  await page.locator('[data-server="fake"][data-state="ready"]', {hasText: String(pid)}).waitFor();
  process.kill(pid, 'SIGKILL');
  await page.locator('[data-server="fake"][data-state="restarting"]', {hasText: 'crashed'}).waitFor();
  await page.waitForSelector('[data-server="fake"][data-state="ready"]');
  await page.getByRole('button', {name: 'Stop fake'}).click();
  await page.waitForSelector('[data-server="fake"][data-state="ready"]', {state: 'detached'});
  context.assertSilent();
});

test('health: a problem appears and goes, and the numbers are those of the method', async () => {
  await open(page, '#/health?range=15m');
  await page.waitForSelector('[data-health="healthy"]');
  const good = fs.readFileSync(project.settings, 'utf8');
  project.writeSettings('max_running = "many"\n');
  await page.waitForSelector('[data-health="degraded"]');
  await page.waitForSelector('[data-problem]');
  project.writeSettings(good);
  await page.waitForSelector('[data-health="healthy"]');
  const names = ['completed', 'failed', 'cancelled', 'queued', 'running', 'waitP50', 'waitP95', 'runP50', 'runP95', 'requests', 'requestP50', 'requestP99', 'lagP99', 'memory', 'clients'];
  for (const name of names) await page.waitForSelector(`[data-series="${name}"]`);
  await eventually(async () => {
    const box = await page.locator('.plot', {hasText: 'Memory'}).locator('svg.plot-drawing').boundingBox();
    await page.mouse.move(box.x + box.width - 12, box.y + 40);
    const shown = Number(await page.locator('[data-series="memory"] b').getAttribute('data-value'));
    const told = project.call('daemon.metrics', {seconds: 900, points: 120}).series.memory;
    assert.ok(told.includes(shown), `${shown} is not among ${told.slice(-3)}`);
  }, 'the number at the cursor');
  await page.locator('.plot', {hasText: 'Tasks a minute'}).getByRole('button', {name: /^Table/}).click();
  await page.getByRole('dialog').getByRole('columnheader', {name: 'failed'}).waitFor();
  await page.keyboard.press('Escape');
  context.assertSilent();
});
