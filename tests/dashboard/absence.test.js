// A browser that was asleep, and a daemon that was killed: when both are there again, the page shows what is true.

'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const {afterEach, beforeEach, test} = require('node:test');
const {Project, eventually, launchSleeper, live, newContext, offlineWords, open, signIn} = require('./browser.js');

const dropped = 50000;  // milliseconds; a page that is silent for a minute is taken for one that has gone
let sleeper;
let project;

beforeEach(async () => {
  sleeper = await launchSleeper();
  project = new Project('[agents.echo]\ncommand = ["echo", "{prompt}"]\n');
  project.start('--http');
});
afterEach(async () => {
  try {
    sleeper.wake();
    await sleeper.close();
  } finally {
    project.close();
  }
});

/** Hundreds of events, and tasks in three states. The queue is paused. */
async function muchHappens() {
  const client = project.connect();
  const submits = Array.from({length: 300}, (_, i) => ({method: 'task.submit', params: {prompt: `number ${i}`, agent: 'echo'}}));
  const ids = (await client.batch(submits)).map((one) => one.taskId);
  await client.batch(ids.slice(0, 100).map((taskId) => ({method: 'task.cancel', params: {taskId}})));
  await client.batch(ids.slice(100, 200).map((taskId) => ({method: 'task.hold', params: {taskId}})));
  client.close();
  return ids.at(-1);
}

/** The counts above the list are those of the daemon. */
async function assertTrueCounts(page) {
  await open(page, '#/tasks');
  const stats = project.call('task.stats');
  for (const state of ['queued', 'running', 'completed', 'failed', 'cancelled']) {
    await eventually(async () => assert.equal(Number((await page.locator(`[data-count="${state}"]`).textContent()).replace(/\D/g, '')), stats[state]), state);
  }
}

/** Every number from FIRST to that of the newest event is there, and no line tells of a gap. */
async function assertUnbroken(page, first = 1) {
  await open(page, '#/events');
  const client = project.connect();
  const [{next}] = await client.batch([{method: 'events.subscribe', params: {kinds: ['notice']}}]);
  client.close();
  await page.waitForSelector(`[data-seq="${next - 1}"]`);
  const seen = new Set();
  await eventually(async () => {
    for (const seq of await page.locator('[data-seq]').evaluateAll((rows) => rows.map((row) => Number(row.dataset.seq)))) seen.add(seq);
    const atEnd = await page.locator('.scroller').evaluate((box) => (box.scrollTop += box.clientHeight / 2) + box.clientHeight >= box.scrollHeight - 1);
    if (atEnd) await page.locator('.scroller').evaluate((box) => (box.scrollTop = 0));
    assert.deepEqual(Array.from({length: next - first}, (_, i) => first + i).filter((seq) => !seen.has(seq)), []);
  }, 'all numbers');
  assert.equal(await page.locator('.is-gap').count(), 0);
}

test('a browser that slept while more was told than is kept for it catches up', async () => {
  const context = await newContext(sleeper.browser);
  const page = await signIn(context, project);
  const heard = [];
  page.on('websocket', (socket) => socket.on('framereceived', ({payload}) => heard.push(/"method":"event.overflow"/.test(payload))));
  await page.reload();
  await live(page);
  const go = path.join(project.root, 'go');
  const id = project.shell(`until [ -e '${go}' ]; do sleep 0.05; done; yes "a line of many bytes that nobody reads" | head -c 40000000; echo; echo the very end`);
  await open(page, `#/tasks/${id}`);
  await page.locator('[data-state="running"]').first().waitFor();
  project.run('queue', 'pause');
  const asleep = Date.now();
  sleeper.sleep();
  fs.writeFileSync(go, '');
  project.wait(id);
  const last = await muchHappens();
  sleeper.wake();
  const isDropped = Date.now() - asleep > dropped;  // on a slow machine
  await page.locator('[data-state="completed"]').first().waitFor();
  await page.locator('[data-output]', {hasText: 'the very end'}).waitFor();
  await live(page);
  await assertTrueCounts(page);
  await page.locator(`[data-task="${last}"][data-state="queued"]`).waitFor();
  await assertUnbroken(page);
  assert.ok(isDropped || heard.includes(true), 'nothing overflowed');
  context.assertSilent(isDropped ? offlineWords : null);
});

test('a browser that slept while the daemon was killed and came back catches up', async () => {
  const context = await newContext(sleeper.browser);
  const page = await signIn(context, project);
  project.wait(project.shell('true'));
  await page.locator('[data-task][data-state="completed"]').waitFor();
  project.run('queue', 'pause');
  sleeper.sleep();
  project.kill();
  project.start('--http');
  const last = await muchHappens();
  sleeper.wake();
  await page.locator(`[data-task="${last}"][data-state="queued"]`).waitFor();
  await live(page);
  await assertTrueCounts(page);
  await assertUnbroken(page);
  context.assertSilent(offlineWords);
});

test('three tabs stay true over kill -9', async () => {
  const context = await newContext(sleeper.browser);
  const tasks = await signIn(context, project);
  const [events, health] = await Promise.all([context.newPage(), context.newPage()]);
  for (const [tab, view] of [[events, 'events'], [health, 'health']]) {
    await tab.goto(`${tasks.url().split('#')[0]}#/${view}`);
    await live(tab);
  }
  for (let round = 0; round < 3; ++round) {
    project.kill();
    for (const tab of [tasks, events, health]) await tab.waitForSelector('html[data-connection="reconnecting"]');
    project.start('--http');
    const id = project.shell('true');
    project.wait(id);
    for (const tab of [tasks, events, health]) await live(tab);
    await tasks.locator(`[data-task="${id}"][data-state="completed"]`).waitFor();
    await events.locator('[data-kind="taskCompleted"]', {hasText: id}).waitFor();
  }
  await assertTrueCounts(tasks);
  await assertUnbroken(events);
  await eventually(async () => assert.match(await health.locator('main').textContent(), new RegExp(String(project.pid))), 'the pid of the daemon');
  context.assertSilent(offlineWords);
});
