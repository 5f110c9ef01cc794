// Everything that happened, as the daemon numbered it.

import {button, fill, h, set, setText, setTime} from '../dom.js';
import {icon} from '../icons.js';
import {eventKinds, mostEvents, mostPausedEvents} from '../state.js';
import {clock, count, counted, exact, moment, visible, visibleLine} from '../text.js';
import {VirtualList, emptyState} from '../virtual_list.js';
import {makeDialog, openDialog} from '../feedback.js';

/** @typedef {import('../state.js').LogEntry} LogEntry */
/** @typedef {import('../event_cursor.js').DaemonEvent} DaemonEvent */

const narrow = matchMedia('(max-width: 719px)');
const rowHeight = () => (narrow.matches ? 52 : 30);

/** When it happened, if anybody knows. @param {DaemonEvent} event */
function timeOf({params, at}) {
  const told = params.completedAt ?? (params.state === 'running' ? params.startedAt : params.createdAt);
  return told ? moment(told) : at;
}

/** @param {DaemonEvent} event */
export function whatChanged({kind, params}) {
  const words = [];
  if (params.error) words.push(`${params.error.reason}: ${params.error.message}`);
  else if (params.exitCode !== undefined && params.exitCode !== null) words.push(`exit ${params.exitCode}`);
  if (params.agent) words.push(params.agent);
  if (params.attempts > 1) words.push(`attempt ${params.attempts}`);
  if (params.retryAt) words.push(`again at ${clock(moment(params.retryAt))}`);
  if (params.changed) words.push([].concat(params.changed).join(', '));
  for (const name of ['ruleId', 'group', 'message', 'text', 'reason', 'until', 'by', 'count']) {
    if (params[name] !== undefined && params[name] !== null) words.push(name === 'count' ? `×${params[name]}` : String(params[name]));
  }
  if (kind === 'tasksRemoved') words.push(counted(params.taskIds?.length ?? 0, 'task'));
  if (typeof params.enabled === 'boolean') words.push(params.enabled ? 'on' : 'off');
  return visibleLine(words.join(' · '));
}

/** @param {string} kind */
const toneOf = (kind) => (/Failed|Stopped|Stopping/.test(kind) ? 'failed' : /Completed/.test(kind) ? 'completed' : /Started|Fired/.test(kind) ? 'running'
  : /Cancelled|Denied/.test(kind) ? 'cancelled' : /Held|Paused|approvalNeeded/.test(kind) ? 'held' : 'queued');

/** @type {import('../app.js').ViewFactory} */
export const eventsView = (app, main, firstRoute) => {
  let params = firstRoute.params;
  /** @type {LogEntry[] | null} what is shown while it stands still */
  let frozen = null;
  let frozenAt = 0;
  /** @type {LogEntry[]} */
  let shown = [];
  let active = '';
  const change = (/** @type {Record<string, string>} */ part) => app.go('events', {...params, ...part}, {replace: true});

  const task = h('input', {type: 'search', 'data-filter': true, placeholder: 'Filter by task', 'aria-label': 'Filter by task', autocomplete: 'off'});
  task.addEventListener('input', () => change({task: task.value.trim()}));
  const kind = h('select', {'aria-label': 'Kind'}, h('option', {value: ''}, 'all kinds'), ...eventKinds.map((name) => h('option', {value: name}, name)));
  kind.addEventListener('change', () => change({kind: kind.value}));
  const pause = button('Pause', {'aria-pressed': 'false', on: {click: () => toggle()}});
  const waiting = h('span', {class: 'dim', role: 'status'});
  const body = h('div', {role: 'rowgroup'});
  const head = h('div', {role: 'row', class: 'row head', 'data-head': true}, ...['Number', 'Time', 'Kind', 'Task', 'What changed', ''].map((label) =>
    h('div', {role: 'columnheader', class: `cell-${label.toLowerCase().replace(' ', '-') || 'act'}`}, label || h('span', {class: 'visually-hidden'}, 'JSON'))));
  const grid = h('div', {role: 'grid', class: 'grid events', tabindex: '0', 'aria-label': 'Events'}, h('div', {role: 'rowgroup', class: 'head-group'}, head), body);
  const empty = h('div', {class: 'empty-place'});
  const scroller = h('div', {class: 'scroller'}, grid, empty);
  const foot = h('p', {class: 'foot'});
  fill(main, [h('div', {class: 'filters', role: 'search'}, task, kind, h('span', {class: 'grow'}), waiting, pause), scroller, foot]);

  const keyOf = (/** @type {LogEntry} */ entry) => ('gap' in entry ? `gap-${entry.gap.from}` : entry.event.seq === null ? `at-${entry.event.at}-${entry.event.kind}` : `seq-${entry.event.seq}`);
  const list = new VirtualList({scroller, body, rowHeight, keyOf, make: () => eventRow((entry) => showJson(entry)),
    update: (row, entry, index) => row.show(entry, index, keyOf(entry) === active)});

  function toggle() {
    frozen = frozen ? null : app.state.events.slice();
    frozenAt = app.state.heard;
    app.state.keeps = mostPausedEvents;  // until the view is left: what has waited is to be read
    set(pause, {'aria-pressed': String(frozen !== null)});
    update();
  }

  const matches = (/** @type {LogEntry} */ entry) => 'gap' in entry || ((!params.kind || entry.event.kind === params.kind) &&
      (!params.task || entry.event.params.taskId === params.task || `task-${params.task}` === entry.event.params.taskId || (entry.event.params.taskIds ?? []).includes(params.task)));

  function update() {
    const source = frozen ?? app.state.events;
    const isAtTop = scroller.scrollTop < rowHeight();
    const before = shown.length > 0 ? keyOf(/** @type {LogEntry} */ (shown[0])) : '';
    shown = (params.kind || params.task ? source.filter(matches) : source.slice()).reverse();
    // What one reads stays where it is when more comes above it.
    const added = isAtTop || before === '' ? 0 : shown.findIndex((entry) => keyOf(entry) === before);
    if (document.activeElement !== task) task.value = params.task ?? '';
    kind.value = params.kind ?? '';
    const late = app.state.heard - frozenAt;
    setText(waiting, frozen ? (late === 0 ? 'Paused' : `Paused, ${counted(late, 'event')} wait`) : '');
    setText(pause, frozen ? 'Resume' : 'Pause');
    list.show(shown);
    if (added > 0) scroller.scrollTop += added * rowHeight();
    setText(foot, shown.length === 0 ? '' : `${counted(shown.length, 'event')}, the newest first; the page keeps ${count(app.state.keeps)}`);
    const word = shown.length > 0 ? '' : params.kind || params.task ? 'No event is like that' : 'Nothing has happened yet';
    if (empty.dataset.word !== word) {
      empty.dataset.word = word;
      fill(empty, word === '' ? [] : [emptyState(word, 'Events appear here as they happen.')]);
    }
  }

  const move = (/** @type {number} */ by) => {
    if (shown.length === 0) return;
    const at = shown.findIndex((entry) => keyOf(entry) === active);
    const next = at < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, at + by));
    active = keyOf(/** @type {LogEntry} */ (shown[next]));
    list.reveal(next);
    grid.focus({preventScroll: true});
    set(grid, {'aria-activedescendant': `event-${active}`});
  };
  const current = () => shown.find((entry) => keyOf(entry) === active);

  return {
    update,
    route: (route) => {
      params = route.params;
      update();
    },
    keys: {j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
      Enter: () => {
        const entry = current();
        if (entry) showJson(entry);
      }},
    destroy: () => {
      app.state.keeps = mostEvents;
      list.destroy();
    },
  };
};

/** @param {LogEntry} entry */
function showJson(entry) {
  if ('gap' in entry) return;
  const {kind, params, seq} = entry.event;
  const {dialog, body} = makeDialog(seq === null ? kind : `Event ${seq}`, 'json');
  fill(body, [h('pre', {class: 'json', tabindex: '0', 'aria-label': 'JSON of the event'}, visible(JSON.stringify({method: `event.${kind}`, params}, null, 2))),
    params.taskId && h('footer', {class: 'dialog-foot'}, h('a', {href: `#/tasks/${params.taskId}`, class: 'button', on: {click: () => dialog.close()}}, `Open ${visibleLine(params.taskId)}`))]);
  dialog.addEventListener('close', () => dialog.remove());
  openDialog(dialog);
}

/** @param {(entry: LogEntry) => void} open */
function eventRow(open) {
  const cell = (/** @type {string} */ name, /** @type {Node[]} */ ...children) => h('div', {role: 'gridcell', class: `cell-${name}`}, ...children);
  const parts = {number: cell('number'), kind: cell('kind'), task: cell('task'), what: cell('what-changed')};
  const time = h('time', {class: 'when'});
  /** @type {LogEntry} */
  let shown;
  const json = button('JSON', {class: 'quiet small', on: {click: () => open(shown)}});
  const row = h('div', {role: 'row', class: 'row'}, parts.number, cell('time', time), parts.kind, parts.task, parts.what, cell('act', json));
  return Object.assign(row, {show: (/** @type {LogEntry} */ entry, /** @type {number} */ index, /** @type {boolean} */ isActive) => {
    set(row, {class: `row${isActive ? ' is-active' : ''}${'gap' in entry ? ' is-gap' : ''}`, 'aria-rowindex': String(index + 2)});
    if (shown === entry) return;
    shown = entry;
    if ('gap' in entry) return showGap(entry.gap);
    const {event} = entry;
    set(row, {id: `event-seq-${event.seq}`, 'data-seq': event.seq, 'data-kind': event.kind});
    setText(parts.number, event.seq === null ? '–' : String(event.seq));
    const at = timeOf(event);
    setTime(time, at);
    if (!Number.isNaN(at)) set(time, {title: exact(at)});
    fill(parts.kind, [h('span', {class: `state is-${toneOf(event.kind)}`}, icon(toneOf(event.kind)), h('span', {}, event.kind))]);
    fill(parts.task, event.params.taskId ? [h('a', {class: 'mono', href: `#/tasks/${event.params.taskId}`}, visibleLine(event.params.taskId))] : []);
    setText(parts.what, whatChanged(event));
    set(json, {'aria-label': `JSON of event ${event.seq ?? event.kind}`});
  }});

  function showGap(/** @type {import('../event_cursor.js').Gap} */ gap) {
    set(row, {'data-gap': `${gap.from}-${gap.to}`, 'data-seq': null});
    setText(parts.number, '');
    setText(parts.what, `Events ${gap.from} to ${gap.to} are missing: ${gap.isOurs ? 'there were too many for this page' : 'the daemon did not keep them'}.`);
    fill(parts.kind, [h('span', {class: 'state is-held'}, icon('warning'), h('span', {}, 'gap'))]);
    set(json, {hidden: true});
  }
}
