// The output of one task, with what one does to it: find, wrap, follow, copy, download.

import {button, h, set, setText} from '../dom.js';
import {attempt} from '../feedback.js';
import {icon} from '../icons.js';
import {OutputPane} from '../output_pane.js';
import {OutputReader, wholeOutput} from '../output_reader.js';
import {preference, prefer} from '../preferences.js';
import {bytes, counted} from '../text.js';

const pause = 100;  // between two reads of output that comes all the time
const farBehind = 4 * 1024 * 1024;

/** @param {import('../app.js').App} app @param {string} id @param {HTMLElement} notes */
export function outputSection(app, id, notes) {
  const reader = new OutputReader((method, params) => app.call(method, params), id);
  let isFollowing = true;
  let isBusy = false;
  let isLate = false;  // something was written while we read
  let wasLive = false;
  let lastState = '';
  /** @type {number[]} */
  let hits = [];
  let hit = -1;

  const pane = new OutputPane({
    onScrolled: (isAtEnd) => {
      if (isAtEnd === isFollowing) return;
      setFollowing(isAtEnd && reader.isAtEnd);
    },
    onTop: () => loadEarlier(),
    onBottom: () => !reader.isAtEnd && loadLater(),
  });
  pane.isWrapped = preference('wrap', 'on') === 'on';

  const follow = button('Follow', {'aria-pressed': 'true', class: 'small', on: {click: () => startFollowing()}}, icon('down'), 'Follow');
  const wrap = button('Wrap', {'aria-pressed': String(pane.isWrapped), class: 'small', on: {click: () => {
    pane.isWrapped = !pane.isWrapped;
    prefer('wrap', pane.isWrapped ? 'on' : 'off');
    set(wrap, {'aria-pressed': String(pane.isWrapped)});
    set(pane.element, {'data-wrap': String(pane.isWrapped)});
    pane.relayout();
  }}}, icon('wrap'), 'Wrap');
  const field = h('input', {type: 'search', 'data-filter': true, placeholder: 'Find', 'aria-label': 'Find in the output', autocomplete: 'off'});
  const found = h('span', {class: 'dim found', role: 'status'});
  const previous = button('', {class: 'icon-button', 'aria-label': 'Previous match', on: {click: () => step(-1)}}, icon('up'));
  const next = button('', {class: 'icon-button', 'aria-label': 'Next match', on: {click: () => step(1)}}, icon('down'));
  const copy = button('Copy', {class: 'small'}, icon('copy'), 'Copy');
  const download = button('Download', {class: 'small', 'data-online': true}, icon('download'), 'Download');
  const place = h('p', {class: 'output-place dim', role: 'status'});
  set(pane.element, {'data-wrap': String(pane.isWrapped)});
  const element = h('section', {class: 'task-output', 'aria-label': 'Output of the task'},
      h('div', {class: 'output-tools'}, h('h2', {class: 'caption'}, 'Output'), h('span', {class: 'find'}, field, found, previous, next),
          h('span', {class: 'grow'}), wrap, follow, copy, download), pane.element, place);

  field.addEventListener('input', () => find(true));
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
  });
  copy.addEventListener('click', () => attempt(notes, copy, async () => {
    if (!navigator.clipboard) throw new Error('The browser lets pages copy only over https or on localhost. Download works.');
    await navigator.clipboard.writeText(reader.text.lines.map((line) => (line.dropped ? `[${line.dropped} bytes dropped]` : line.text)).join('\n'));
    setText(place, 'Copied what is loaded.');
  }, 'Copy'));
  download.addEventListener('click', () => attempt(notes, download, async () => {
    const parts = await wholeOutput((method, params) => app.call(method, params), id, (done) => setText(place, `Downloading: ${bytes(done)}`));
    const url = URL.createObjectURL(new Blob(parts, {type: 'application/octet-stream'}));
    const link = h('a', {href: url, download: `${id}.log`});
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
    showPlace();
  }, 'Download'));

  function setFollowing(/** @type {boolean} */ isOn) {
    isFollowing = isOn;
    pane.isFollowing = isOn;
    pane.lastTop = 0;
    set(follow, {'aria-pressed': String(isOn)});
  }

  // The end may not be here any more.
  async function startFollowing() {
    if (!reader.isAtEnd && app.isLive) await reader.openTail().catch(() => {});
    setFollowing(true);
    pane.show(reader.text);
    showPlace();
  }

  async function read() {
    if (isBusy) return void (isLate = true);
    if (!app.isLive) return;
    isBusy = true;
    try {
      if (!reader.isOpen) {
        await reader.openTail();
        pane.show(reader.text);
      } else {
        const came = await reader.more();
        if (came === 'part') await catchUp();
        if (came !== 'nothing') pane.update();
      }
    } catch {
      isLate = false;  // the next connection, or the next event, tries again
    }
    showPlace();
    if (field.value !== '') find(false);
    setTimeout(() => {
      isBusy = false;
      if (!isLate) return;
      isLate = false;
      read();
    }, pause);
  }

  // More than a portion was written: whoever follows wants the end of it, others read on.
  async function catchUp() {
    isLate = true;
    if (!isFollowing || await reader.behind() < farBehind) return;
    await reader.openTail();
    pane.show(reader.text);
  }

  let isLoading = false;
  async function loadEarlier() {
    if (isLoading || reader.text.start <= 0 || !app.isLive || !reader.isOpen) return;
    isLoading = true;
    setFollowing(false);
    try {
      const added = await reader.earlier();
      pane.keepPlace(added);
    } catch {
      // What is on the screen stays; scrolling asks again.
    }
    isLoading = false;
    showPlace();
  }

  async function loadLater() {
    if (isLoading || !app.isLive) return;
    isLoading = true;
    await reader.later().catch(() => {});
    isLoading = false;
    pane.update();
    showPlace();
  }

  function showPlace() {
    const {start, end, lines} = reader.text;
    const part = start > 0 ? `from byte ${start.toLocaleString('en')}, earlier output when you scroll up` : 'from the beginning';
    setText(place, !reader.isOpen ? '' : end === 0 ? (reader.isDone ? 'It has written nothing.' : 'It has written nothing yet.')
      : `${counted(Math.max(1, lines.length - 1), 'line')}, ${bytes(end - start)} of ${bytes(reader.total)} ${part}`);
  }

  function find(/** @type {boolean} */ isNew) {
    hits = pane.find(field.value);
    for (const one of [previous, next, found]) set(one, {hidden: field.value === ''});
    if (isNew) hit = -1;
    setText(found, field.value === '' ? '' : hits.length === 0 ? 'none' : `${hit + 1}/${hits.length}`);
    if (isNew && hits.length > 0) step(1);
  }

  function step(/** @type {number} */ by) {
    if (hits.length === 0) return;
    setFollowing(false);
    hit = (hit + by + hits.length) % hits.length;
    pane.reveal(hits[hit] ?? 0);
    setText(found, `${hit + 1}/${hits.length}`);
  }

  app.connection.followOutput([id]);
  find(true);
  read();
  return {
    element,
    /** Something was written. */
    told: () => void read(),
    /** @param {any} record */
    update: (record) => {
      const state = `${record?.state} ${record?.attempts}`;
      if ((app.isLive && !wasLive) || (record && state !== lastState)) read();
      wasLive = app.isLive;
      lastState = state;
    },
    follow: () => void startFollowing(),
    scroll: (/** @type {number} */ rows) => pane.element.scrollBy(0, rows * 18),
    destroy: () => {
      app.connection.followOutput([]);
      pane.destroy();
    },
  };
}

