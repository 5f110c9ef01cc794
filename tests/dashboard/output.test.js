// The output of tasks on the page.

'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const {after, before, test} = require('node:test');
const {Project, eventually, launch, newContext, open, patience, signIn} = require('./browser.js');

const lines64 = 1250000;  // some 70 MiB
let browser;
let project;
let context;
let page;

before(async () => {
  browser = await launch();
  project = new Project('default_agent = "shell"\n');
  project.start('--http');
  context = await newContext(browser, {acceptDownloads: true, permissions: ['clipboard-read', 'clipboard-write']});
  page = await signIn(context, project);
});
after(async () => {
  await browser.close();
  project.close();
});

const lines = () => page.locator('[data-output] [data-line]');
const lineText = (number) => page.locator(`[data-output] [data-line="${number}"] .output-text`);
const scrollTo = (place) => page.locator('[data-output]').evaluate((output, top) => (output.scrollTop = top < 0 ? output.scrollHeight : top), place);

async function downloaded(id) {
  const [download] = await Promise.all([page.waitForEvent('download', {timeout: 6 * patience}), page.getByRole('button', {name: 'Download'}).click()]);
  assert.equal(download.suggestedFilename(), `${id}.log`);
  return fs.readFileSync(await download.path());
}

test('colours, styles and cursor movements are those of a terminal, other sequences vanish', async () => {
  const id = project.shell(String.raw`printf 'plain \033[1;31mred\033[0m \033[38;5;208morange\033[0m \033[38;2;1;2;3mtrue\033[0m\n'` +
      String.raw`; printf '\033]0;title\007one\033[2J\033[3Atwo\033(B\n12345\rab\n1234\b\bx\na\tb\nxxx\033[2K\ryyy\n\033[4munder\033[24m \033[9mgone\033[0m\n'` +
      String.raw`; printf 'bad \377 byte\n'`);
  project.wait(id);
  await open(page, `#/tasks/${id}`);
  await lineText(8).waitFor();
  assert.deepEqual(await lines().locator('.output-text').allTextContents(),
      ['plain red orange true', 'onetwo', 'ab345', '12x4', 'a       b', 'yyy', 'under gone', 'bad \ufffd byte']);
  const style = (text) => page.locator('[data-output] span', {hasText: new RegExp(`^${text}$`)}).last()
      .evaluate((element) => ({weight: getComputedStyle(element).fontWeight, colour: getComputedStyle(element).color, line: getComputedStyle(element).textDecorationLine}));
  assert.equal((await style('red')).weight, '700');
  assert.equal((await style('orange')).colour, 'rgb(255, 135, 0)');
  assert.equal((await style('true')).colour, 'rgb(1, 2, 3)');
  assert.equal((await style('under')).line, 'underline');
  assert.equal((await style('gone')).line, 'line-through');
  assert.deepEqual(await downloaded(id), project.run('task', 'output', id));
  await page.getByRole('button', {name: 'Copy'}).click();
  await eventually(async () => assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^plain red orange true\nonetwo\n/));
  context.assertSilent();
});

test('what is downloaded is what the command line prints, byte for byte', async () => {
  const id = project.shell('head -c 2500000 /dev/urandom');
  project.wait(id);
  await open(page, `#/tasks/${id}`);
  assert.ok((await downloaded(id)).equals(project.run('task', 'output', id)));
});

test('it follows until somebody scrolls up, and Follow leads back', async () => {
  const id = project.shell('i=0; while [ ! -e stop ]; do i=$((i+1)); echo line $i; sleep 0.02; done; echo the end');
  await open(page, `#/tasks/${id}`);
  // Only the last lines are in the document, and others a moment later.
  await eventually(async () => assert.ok((await lines().evaluateAll((rows) => rows.map((row) => Number(row.dataset.line)))).some((line) => line >= 60)));
  const follow = page.getByRole('button', {name: 'Follow'});
  assert.equal(await follow.getAttribute('aria-pressed'), 'true');
  await scrollTo(0);
  await eventually(async () => assert.equal(await follow.getAttribute('aria-pressed'), 'false'));
  await lineText(1).waitFor();
  const before = await page.locator('[data-output]').evaluate((output) => output.scrollHeight);
  await eventually(async () => assert.ok(await page.locator('[data-output]').evaluate((output) => output.scrollHeight) > before));
  assert.ok(await page.locator('[data-output]').evaluate((output) => output.scrollTop) < 400);
  await follow.click();
  await eventually(async () => assert.ok(await page.locator('[data-output]').evaluate((output) => output.scrollTop + output.clientHeight >= output.scrollHeight - 40)));
  assert.equal(await follow.getAttribute('aria-pressed'), 'true');
  fs.writeFileSync(`${project.root}/stop`, '');
  await page.locator('[data-output]', {hasText: 'the end'}).waitFor();
  await page.locator('[data-task][data-state="completed"]').first().waitFor();
  context.assertSilent();
});

test('64 MiB begin with the last one, load upward to the dropped middle, are searched and downloaded', async () => {
  const id = project.shell(`seq -f "line %.0f of a large output that is dropped in the middle" 1 ${lines64}; echo needle; echo last`);
  project.wait(id);
  assert.ok(project.record(id).outputBytes > 64 * 1024 * 1024);
  const whole = Buffer.from(`${Array.from({length: lines64}, (_, i) => `line ${i + 1} of a large output that is dropped in the middle`).join('\n')}\nneedle\nlast\n`);
  await open(page, `#/tasks/${id}`);
  await page.locator('[data-output]', {hasText: 'needle'}).waitFor();
  const elements = () => page.evaluate(() => document.querySelectorAll('[data-output] *').length);
  assert.ok(await elements() < 2000);
  assert.match(await page.locator('.output-place').textContent(), /1\.0 MiB of \d+ MiB from byte/);
  await page.getByLabel('Find in the output').fill('1249990 of');
  await page.locator('[data-output] mark', {hasText: '1249990 of'}).waitFor();
  await page.getByLabel('Find in the output').fill('');
  const told = await page.waitForFunction(() => {
    document.querySelector('[data-output]').scrollTop = 0;
    return document.querySelector('[data-output] .dropped')?.textContent;
  }, null, {polling: 50, timeout: 6 * patience});
  const dropped = Number((await told.jsonValue()).split(' ')[0].replaceAll(',', ''));
  assert.ok(await elements() < 2000);
  await page.getByRole('button', {name: 'Follow'}).click();
  await page.locator('[data-output]', {hasText: 'needle'}).waitFor();
  const bytes = await downloaded(id);
  const note = /\n?\[(\d+) bytes dropped\]\n/.exec(bytes.toString('latin1'));
  assert.equal(Number(note[1]), dropped);
  const [head, tail] = [bytes.subarray(0, note.index), bytes.subarray(note.index + note[0].length)];
  assert.equal(head.length + dropped + tail.length, whole.length);
  assert.ok(whole.subarray(0, head.length).equals(head) && whole.subarray(whole.length - tail.length).equals(tail));
  context.assertSilent();
});

test('a line of 1 MB without a blank is cut into rows, and the page stays as wide as it is', async () => {
  const id = project.shell('head -c 1000000 /dev/zero | tr "\\0" "x"');
  project.wait(id);
  await open(page, `#/tasks/${id}`);
  await page.waitForSelector('[data-output] .output-row');
  for (const isWrapped of [true, false]) {
    assert.ok(await page.evaluate(() => document.querySelectorAll('[data-output] *').length) < 2000);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
    assert.equal(await page.getByRole('button', {name: 'Wrap'}).getAttribute('aria-pressed'), String(isWrapped));
    await page.getByRole('button', {name: 'Wrap'}).click();
  }
  context.assertSilent();
});
