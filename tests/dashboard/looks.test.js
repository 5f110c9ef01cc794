// Every view, dark and light, wide and narrow: accessible, nothing cut off, nothing on the console.

'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {Project, assertAccessible, assertNoSidewaysScroll, eventually, launch, live, narrow, newContext, open, signIn, wide} = require('./browser.js');

let browser;
let project;
let ids;

before(async () => {
  browser = await launch();
  project = new Project(`max_running = 2
[agents.echo]
command = ["echo", "{prompt}"]
[[rules]]
id = "ask"
trigger = { source = "task", type = "task.failed" }
action = { type = "agent", agent = "echo", prompt = "look at {{payload.taskId}}" }
requires_approval = true
[[rules]]
id = "a-rule-with-quite-a-long-name"
trigger = { source = "watch", type = "file.modify", pattern = "src/**/*.cpp" }
action = { type = "notify", message = "changed" }
[groups.nightly]
max_running = 1
`);
  project.start('--http');
  const good = project.shell(String.raw`printf '\033[31mred\033[0m \033[1;32mgreen\033[0m \033[7minverse\033[0m \033[44mblue\033[0m %s\n' "$(seq -s ' ' 1 300)"`, '--label', 'ticket=1');
  const bad = project.shell('echo oh no; exit 3');
  project.wait(good, bad);
  ids = {good, bad, running: project.shell('sleep 600'), dependent: project.shell('true', '--after', bad), waiting: project.shell('true', '--delay', '1h')};
  const held = project.shell('true', '--delay', '2h');
  project.run('task', 'hold', held);
  project.call('task.restart', {taskId: bad});
});
after(async () => {
  await browser.close();
  project.close();
});

const views = () => ['#/tasks', '#/tasks?state=failed&text=nothing', `#/tasks/${ids.good}`, `#/tasks/${ids.waiting}`, '#/tasks/task-4242', '#/timeline', '#/graph', '#/events', '#/rules', '#/servers', '#/health'];

/** What people press is at least 24 px high and wide, and inside of the window. */
async function assertTargets(page, what) {
  const small = await page.evaluate(() => [...document.querySelectorAll('button, a, select, input, [role=switch]')].filter((element) => {
    const box = (element.closest('label.hit, label.choice') ?? element).getBoundingClientRect();
    if (box.width === 0 || getComputedStyle(element).visibility === 'hidden') return false;
    const isInline = getComputedStyle(element).display === 'inline';  // words inside of a sentence are excepted
    return (!isInline && (box.width < 23.5 || box.height < 23.5)) || ((box.left < -1 || box.right > innerWidth + 1) && !element.closest('.graph, .scroller, .dialog'));
  }).map((element) => `${element.tagName} ${element.getAttribute('aria-label') ?? element.textContent} ${JSON.stringify(element.getBoundingClientRect())}`));
  assert.deepEqual(small, [], what);
}

for (const [size, viewport] of Object.entries({wide, narrow})) {
  for (const colorScheme of ['light', 'dark']) {
    test(`all views, ${size} and ${colorScheme}`, async () => {
      const context = await newContext(browser, {viewport, colorScheme, reducedMotion: colorScheme === 'dark' ? 'reduce' : 'no-preference'});
      const page = await signIn(context, project);
      await page.waitForSelector('[data-task]');
      for (const hash of views()) {
        await open(page, hash);
        await eventually(async () => assert.ok(await page.locator('main').evaluate((main) => main.textContent.length > 20)));
        await assertNoSidewaysScroll(page, `${hash} ${size} ${colorScheme}`);
        await assertTargets(page, `${hash} ${size} ${colorScheme}`);
        await assertAccessible(page, `${hash} ${size} ${colorScheme}`);
      }
      await page.keyboard.press('n');
      await page.getByRole('dialog').waitFor();
      await assertAccessible(page, `dialog ${size} ${colorScheme}`);
      await page.keyboard.press('Escape');
      await page.getByRole('button', {name: 'Settings'}).click();
      await assertAccessible(page, `settings ${size} ${colorScheme}`);
      await page.keyboard.press('Escape');
      await page.getByRole('button', {name: 'Sign out'}).click();
      await page.waitForSelector('main[data-view="sign-in"]');
      await assertNoSidewaysScroll(page, 'sign-in');
      await assertAccessible(page, `sign-in ${size} ${colorScheme}`);
      context.assertSilent();
      await context.close();
    });
  }
}

test('200 % zoom, forced colours, and the switch of colours', async () => {
  const context = await newContext(browser, {viewport: {width: 640, height: 400}, deviceScaleFactor: 2, forcedColors: 'active'});
  const page = await signIn(context, project);
  for (const hash of views()) {
    await open(page, hash);
    await assertNoSidewaysScroll(page, `${hash} at 200 %`);
  }
  await page.emulateMedia({forcedColors: 'none', colorScheme: 'light'});
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByRole('button', {name: 'Settings'}).click();
  await page.getByLabel('dark').check();
  const dark = await background();
  assert.notEqual(dark, light);
  await page.reload();
  await live(page);
  assert.equal(await background(), dark);
  await page.getByRole('button', {name: 'Settings'}).click();
  await page.getByLabel('auto').check();
  assert.equal(await background(), light);
  context.assertSilent();
  await context.close();
});

test('ends, failures and approvals are told to those who listen, times are exact on hover', async () => {
  const context = await newContext(browser);
  const page = await signIn(context, project);
  await page.waitForSelector('[data-task]');
  const id = project.run('task', 'submit', '--agent', 'echo', 'quick').toString().trim();
  await page.locator('[role=status][aria-live=polite]', {hasText: `${id} completed`}).waitFor({state: 'attached'});
  const time = page.locator(`[data-task="${id}"] time`);
  assert.equal(await time.getAttribute('datetime'), project.record(id).createdAt);
  assert.match(await time.getAttribute('title'), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [+-]\d\d:\d\d$/);
  context.assertSilent();
  await context.close();
});

test('notifications come while the tab is hidden, once for all tabs', async () => {
  const context = await newContext(browser, {permissions: ['notifications']});
  const seen = [];
  await context.exposeFunction('tellTest', (title) => seen.push(title));
  await context.addInitScript(() => {
    Object.defineProperty(document, 'hidden', {get: () => true});
    window.Notification = Object.assign(class {
      constructor(title) {
        window.tellTest(title);
      }
    }, {permission: 'granted', requestPermission: async () => 'granted'});
  });
  const page = await signIn(context, project);
  const second = await context.newPage();
  await second.goto(page.url());
  await live(second);
  const former = project.shell('exit 5');
  project.wait(former);
  const {approvalsOf} = await import(path.join(__dirname, '..', '..', 'web', 'state.js'));
  const waiting = await eventually(() => {
    const approvals = approvalsOf(project.call('automation.status'));
    assert.ok(approvals.some((one) => new RegExp(`${former}\\b`).test(JSON.stringify(one))));
    return approvals.length;
  });
  for (const tab of [page, second]) await eventually(async () => assert.ok((await tab.title()).startsWith(`(${waiting}) `)));
  await page.getByRole('button', {name: 'Settings'}).click();
  assert.deepEqual(seen, []);
  await page.getByRole('switch', {name: 'Notifications'}).click();
  await page.waitForSelector('[role=switch][aria-label="Notifications"][aria-checked="true"]');
  const id = project.shell('exit 6');
  project.wait(id);
  await eventually(() => assert.deepEqual([...seen].sort(), ['ask needs an approval', `${id} failed`]));
  for (const tab of [page, second]) {
    await eventually(async () => assert.ok((await tab.title()).startsWith(`(${waiting + 1}) `)));
    await tab.evaluate(async () => void await navigator.locks.query());  // locks that it asked for before are given or refused now
  }
  assert.equal(seen.length, 2);
  await context.close();
});
