// Tasks, the dialog that submits one, one task, and the keys.

'use strict';

const assert = require('node:assert/strict');
const {after, before, beforeEach, test} = require('node:test');
const {Project, eventually, launch, live, narrow, newContext, offlineWords, open, signIn} = require('./browser.js');

const hostile = '<img src=x onerror=alert(1)> javascript:alert(1) \u202egnp.exe \u0007 \u2066 &amp; "\'';
let browser;
let project;
let context;
let page;

before(async () => {
  browser = await launch();
  project = new Project('default_agent = "echo"\nmax_running = 3\n[agents.echo]\ncommand = ["echo", "{prompt}"]\n' +
      '[agents."<b>bold</b>"]\ncommand = ["echo", "{prompt}"]\n[groups.small]\nmax_running = 1\n');
  project.start('--http');
  context = await newContext(browser, {acceptDownloads: true, permissions: ['clipboard-read', 'clipboard-write']});
  page = await signIn(context, project);
});
beforeEach(async () => {
  await page.goto(`${page.url().split('#')[0]}#/health`);
  await page.reload();
  await live(page);
});
after(async () => {
  await browser.close();
  project.close();
});

const row = (id, state = '') => page.locator(`main[data-view="tasks"] [role=row][data-task="${id}"]${state ? `[data-state="${state}"]` : ''}`);

/** The second at once behind the first, which the page forgets soon. */
const pressBoth = (first, second) => Promise.all([page.keyboard.press(first), page.keyboard.press(second)]);

test('a task of the command line appears, runs and ends without a reload', async () => {
  await open(page, '#/tasks');
  const id = project.shell('until [ -e go ]; do sleep 0.05; done');
  await row(id, 'running').waitFor();
  assert.match(await row(id).textContent(), /running.*shell.*until.*unix/s);
  require('node:fs').writeFileSync(`${project.root}/go`, '');
  await row(id, 'completed').waitFor();
  await eventually(async () => assert.equal(await page.locator('[data-count="completed"] b').textContent(), String(project.call('task.stats').completed)));
  context.assertSilent();
});

test('filters combine, live in the address, and survive a reload, back and forward', async () => {
  const failed = project.shell('exit 3');
  const other = project.run('task', 'submit', '--agent', 'echo', 'needle in a haystack').toString().trim();
  project.wait(failed, other);
  await open(page, '#/tasks');
  await row(other, 'completed').waitFor();
  await page.locator('[data-count="failed"]').click();
  await row(other).waitFor({state: 'detached'});
  await page.locator('[data-count="completed"]').click();
  await page.getByLabel('Filter by text').fill('needle');
  await row(failed).waitFor({state: 'detached'});
  await row(other).waitFor();
  await page.getByLabel('Agent').selectOption('echo');
  await page.getByLabel('Time').selectOption('1h');
  assert.match(page.url(), /#\/tasks\?agent=echo&since=1h&state=failed,completed&text=needle$/);
  await page.reload();
  await row(other).waitFor();
  assert.equal(await page.locator('main [role=row][data-task]').count(), 1);
  assert.equal(await page.getByLabel('Filter by text').inputValue(), 'needle');
  const address = page.url();
  await row(other).getByRole('link').click();
  await page.waitForSelector('main[data-view="task"]');
  await page.goBack();
  await row(other).waitFor();
  assert.equal(page.url(), address);
  await page.goForward();
  await page.waitForSelector('main[data-view="task"]');
  await open(page, '#/tasks?text=nothing+is+like+this');
  await page.getByText('No task is like that').waitFor();
  await open(page, '#/tasks?sort=agent.up');
  await eventually(async () => {
    const agents = await page.locator('main [role=row][data-task] .cell-agent').allTextContents();
    assert.ok(agents.length > 1);
    assert.deepEqual(agents, [...agents].sort());
  });
  context.assertSilent();
});

test('several are selected, cancelled with one question, and the outcome of each is told', async () => {
  const ids = [1, 2, 3].map((i) => project.shell(`sleep 60 # ${i}`, '--delay', '1h'));
  await open(page, '#/tasks?state=queued');
  for (const id of ids) await row(id, 'queued').locator('input').check();
  await page.getByRole('button', {name: 'Cancel 3 tasks'}).click();
  const dialog = page.getByRole('dialog');
  assert.equal(await dialog.count(), 1);
  project.run('task', 'cancel', ids[1]);  // somebody else was faster
  await dialog.getByRole('button', {name: 'Cancel 3 tasks'}).click();
  await eventually(async () => assert.equal(await dialog.locator('.is-good').count() + await dialog.locator('.is-bad').count(), 3));
  assert.match(await dialog.locator('li', {hasText: ids[1]}).textContent(), /not cancellable/);
  assert.match(await dialog.locator('li', {hasText: ids[0]}).textContent(), /cancelled/);
  await dialog.getByRole('button', {name: 'Done'}).click();
  await eventually(() => ids.forEach((id) => assert.equal(project.record(id).state, 'cancelled')));
  context.assertSilent();
});

test('the dialog keeps what is typed, never preselects a shell, and a double click makes one task', async () => {
  await open(page, '#/tasks');
  const opener = page.getByRole('button', {name: 'Submit task'});
  await opener.click();
  const dialog = page.getByRole('dialog', {name: 'Submit a task'});
  await dialog.getByLabel('Prompt').fill('typed once');
  await eventually(async () => assert.deepEqual(await dialog.getByLabel('Agent').locator('option').allTextContents(),
      ['default (echo)', ...project.call('agent.list').agents.map((agent) => agent.name + (agent.available ? '' : ' (not found)'))]));
  assert.equal(await dialog.getByLabel('Agent').inputValue(), '');
  await page.keyboard.press('Escape');
  await dialog.waitFor({state: 'detached'}).catch(() => dialog.waitFor({state: 'hidden'}));
  await page.keyboard.press('n');
  assert.equal(await dialog.getByLabel('Prompt').inputValue(), 'typed once');
  await page.evaluate(() => {  // a key that comes right after it, before anybody has heard that the dialog is closed
    document.querySelector('dialog').close();
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'n', bubbles: true}));
  });
  assert.equal(await dialog.getByLabel('Prompt').inputValue(), 'typed once');
  await dialog.getByLabel('Time limit').fill('soon');
  await dialog.getByRole('button', {name: 'Submit task'}).click();
  await dialog.getByText('The time limit is a time').waitFor();
  await dialog.getByLabel('Time limit').fill('5m');
  await dialog.getByLabel('Retries').fill('2');
  await dialog.getByLabel('Priority').fill('7');
  await dialog.getByLabel('After').fill('999999');
  await dialog.getByRole('button', {name: 'Submit task'}).click();
  await dialog.getByText('-32000').waitFor();
  await dialog.getByLabel('After').fill('');
  await dialog.getByRole('button', {name: 'Submit task'}).dblclick();
  await page.getByText('Submitted task-').waitFor();
  const made = project.call('task.list', {limit: 50}).filter((task) => task.prompt === 'typed once');
  assert.equal(made.length, 1);
  assert.deepEqual([made[0].priority, made[0].metadata.timeoutSeconds, made[0].metadata.retries, made[0].agent, made[0].metadata.by.split(':')[0]], [7, 300, 2, 'echo', 'http']);
  await row(made[0].id, 'completed').waitFor();
  context.assertSilent();
});

test('kill -9 between the click and the answer makes one task', async () => {
  const own = new Project('default_agent = "echo"\n[agents.echo]\ncommand = ["echo", "{prompt}"]\n');
  own.start('--http');
  const other = await newContext(browser);
  const tab = await other.newPage();
  let isCut = false;
  await tab.routeWebSocket(/\/ws$/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((text) => {
      const isSubmit = String(text).includes('task.submit');
      server.send(text);
      if (!isSubmit || isCut) return;
      isCut = true;  // the answer is lost, and the daemon with it
      server.onMessage(() => {});
      const waiting = setInterval(() => {
        if (own.call('task.stats').total !== 1) return;
        clearInterval(waiting);
        own.kill();
        own.start('--http');
      }, 20);
    });
  });
  await tab.goto(own.loginUrl());
  await live(tab);
  await tab.keyboard.press('n');
  await tab.getByLabel('Prompt').fill('only once');
  await tab.getByRole('dialog').getByRole('button', {name: 'Submit task'}).click();
  await tab.getByText('Submitted task-1').waitFor();
  assert.equal(own.call('task.stats').total, 1);
  other.assertSilent(offlineWords);
  await other.close();
  own.close();
});

test('a task shows all of its record, its causes and followers, and Restart leads to the new one', async () => {
  const first = project.shell('echo to stdout; echo to stderr >&2; exit 4', '--label', 'ticket=77', '--priority', '3');
  project.wait(first);
  const good = project.shell('true');
  const next = project.shell('true', '--after', good);
  project.wait(good, next);
  await open(page, `#/tasks/${first}`);
  const facts = page.locator('.facts');
  for (const text of ['shell', 'ticket', '77', 'Exit code', '4', 'unix', 'Memory']) await facts.getByText(text).first().waitFor();
  await page.locator('.task-summary', {hasText: 'failed'}).waitFor();
  await page.getByText('exit: ').waitFor();
  await page.getByRole('button', {name: `Restart ${first}`}).click();
  await eventually(async () => assert.notEqual(await page.locator('h1').textContent(), first));
  const made = await page.locator('h1').textContent();
  assert.equal(project.record(made).metadata.restartOf, first);
  await facts.getByRole('link', {name: first}).waitFor();
  await open(page, `#/tasks/${good}`);
  await facts.getByRole('link', {name: next}).waitFor();
  await open(page, '#/tasks/task-424242');
  await page.getByText('There is no task-424242').waitFor();
  context.assertSilent();
});

test('a task that waits says why, and can be held and released', async () => {
  const first = project.shell('sleep 600');
  const id = project.shell('true', '--after', first);
  await open(page, `#/tasks/${id}`);
  await page.locator('[data-reason="after"]', {hasText: first}).waitFor();
  await page.getByRole('button', {name: `Hold ${id}`}).click();
  await page.locator('[data-reason="held"]').waitFor();
  await page.locator('.task-summary', {hasText: 'held'}).waitFor();
  await page.getByRole('button', {name: `Release ${id}`}).click();
  await page.locator('[data-reason="held"]').waitFor({state: 'detached'});
  await page.getByRole('button', {name: `Cancel ${id}`}).click();
  await page.getByRole('dialog').getByRole('button', {name: `Cancel ${id}`}).click();
  await page.getByRole('dialog').getByRole('button', {name: 'Done'}).click();
  await page.locator('.task-summary', {hasText: 'cancelled'}).waitFor();
  project.run('task', 'cancel', first);
  await open(page, '#/tasks');
  await page.getByRole('button', {name: 'Pause queue'}).click();
  await page.getByText('Queue paused').waitFor();
  assert.equal(project.call('queue.status').paused, true);
  await page.getByRole('button', {name: 'Resume queue'}).click();
  await page.getByText('Queue paused').waitFor({state: 'hidden'});
  context.assertSilent();
});

test('hostile texts show as text and change nothing', async () => {
  const id = project.run('task', 'submit', '--agent', '<b>bold</b>', `${hostile} ${'x'.repeat(100000)}`).toString().trim();
  project.wait(id);
  await open(page, '#/tasks');
  const text = await row(id).locator('.cell-prompt').textContent();
  assert.ok(text.startsWith('<img src=x onerror=alert(1)> javascript:alert(1) ⟨U+202E⟩gnp.exe ␇ ⟨U+2066⟩ &amp; "\''), text.slice(0, 200));
  assert.equal(await row(id).locator('.cell-agent').textContent(), '<b>bold</b>');
  await open(page, `#/tasks/${id}`);
  await page.locator('.prompt', {hasText: '⟨U+202E⟩'}).waitFor();
  await page.waitForSelector('[data-output] .output-row');
  await page.locator('[data-output]').evaluate((output) => (output.scrollTop = 0));
  await page.locator('[data-output] [data-line="1"]', {hasText: '⟨U+202E⟩gnp.exe ␇'}).waitFor();
  for (const view of ['timeline', 'graph', 'events']) await open(page, `#/${view}`);
  assert.equal(await page.locator('img, iframe, b:has-text("bold")').count(), 0);
  const size = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.equal(size[0], size[1]);
  context.assertSilent();
});

test('keys reach everything, not while typing, and can be switched off', async () => {
  const id = project.shell('exit 1');
  project.wait(id);
  await open(page, '#/tasks');
  await row(id, 'failed').waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('Home');
  await page.keyboard.press('x');
  await eventually(async () => assert.equal(await row(id).getAttribute('aria-selected'), 'true'));
  await page.keyboard.press('x');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await page.waitForSelector(`main[data-view="task"] [data-task="${id}"]`);
  await page.getByRole('button', {name: `Restart ${id}`}).waitFor();
  await page.keyboard.press('r');
  await eventually(async () => assert.notEqual(await page.locator('h1').textContent(), id));
  for (const [key, view] of Object.entries({t: 'tasks', l: 'timeline', g: 'graph', e: 'events', r: 'rules', s: 'servers', h: 'health'})) {
    await pressBoth('g', key);
    await page.waitForSelector(`main[data-view="${view}"]`);
  }
  await pressBoth('g', 't');
  await page.waitForSelector('main[data-view="tasks"]');
  await page.keyboard.press('/');
  await page.keyboard.type('nj?');
  assert.equal(await page.getByLabel('Filter by text').inputValue(), 'nj?');
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.getByLabel('Filter by text').fill('');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', {name: 'Keys'}).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  await page.keyboard.press('Control+n').catch(() => {});
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.getByRole('button', {name: 'Settings'}).click();
  await page.getByRole('switch', {name: 'Keyboard shortcuts'}).click();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Settings'));
  await page.keyboard.press('n');
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.evaluate(() => localStorage.setItem('duet-rpc.keys', 'on'));
  context.assertSilent();
});

test('10,000 tasks scroll, with few elements, and are found from the last to the first', async () => {
  const own = new Project('queue_capacity = 20000\n[agents.echo]\ncommand = ["echo", "{prompt}"]\n');
  own.start('--http');
  own.run('queue', 'pause');
  const client = own.connect();
  for (let done = 0; done < 10000; done += 1000) {
    await client.batch(Array.from({length: 1000}, (_, i) => ({method: 'task.submit', params: {prompt: `task number ${done + i + 1}`, agent: 'echo'}})));
  }
  client.close();
  const other = await newContext(browser);
  const tab = await signIn(other, own);
  await tab.waitForSelector('[data-task="task-10000"]');
  const elements = () => tab.evaluate(() => document.querySelectorAll('main *').length);
  assert.ok(await elements() < 2000);
  await open(tab, '#/tasks/task-5');
  await tab.waitForSelector('[data-task="task-5"][data-state="queued"]');
  own.run('task', 'edit', 'task-5', '--priority', '3');
  await eventually(async () => assert.match(await tab.locator('.facts').textContent(), /Priority3/), 'an edit of a task that was not loaded');
  own.run('task', 'cancel', 'task-5');
  await tab.waitForSelector('[data-task="task-5"][data-state="cancelled"]');
  await open(tab, '#/tasks');
  await tab.waitForSelector('[data-task="task-10000"]');
  await eventually(async () => {
    await tab.evaluate(() => (document.querySelector('.scroller').scrollTop = 1e9));
    assert.equal(await tab.locator('[data-task="task-1"]').count(), 1);
  }, 'the oldest task');
  assert.ok(await elements() < 2000);
  await open(tab, '#/tasks?text=number+777');
  await tab.waitForSelector('[data-task="task-777"]');
  await eventually(async () => assert.equal(await tab.locator('main [role=row][data-task]').count(), 11));
  await open(tab, '#/timeline');
  await tab.waitForSelector('[data-task="task-10000"]');
  assert.ok(await elements() < 2000);
  await tab.setViewportSize(narrow);
  await open(tab, '#/tasks');
  await tab.waitForSelector('[data-task="task-10000"]');
  assert.ok(await elements() < 2000);
  other.assertSilent();
  await other.close();
  own.close();
});
