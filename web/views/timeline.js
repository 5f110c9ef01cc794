// When tasks waited and ran: a bar each, on an axis that can be moved and stretched.

import {daemonNow} from '../daemon_clock.js';
import {button, fill, h, s, set, setText} from '../dom.js';
import {icon} from '../icons.js';
import {place, timeLabel, timeTicks, valueAt, zoomed} from '../scale.js';
import {shownState, spans} from '../state.js';
import {tableButton} from '../table_dialog.js';
import {counted, duration, exact, firstLine, moment, secondsOf} from '../text.js';
import {VirtualList, emptyState} from '../virtual_list.js';

/** @typedef {import('../state.js').Task} Task */

const ranges = ['15m', '1h', '6h', '24h'];
const rowHeight = 30;
const longestRange = 366 * 86400 * 1000;
const future = 0.03;  // of the range is kept free behind the now-line

/** @type {import('../app.js').ViewFactory} */
export const timelineView = (app, main, firstRoute) => {
  let params = firstRoute.params;
  /** @type {Task[]} */
  let shown = [];
  let selected = params.task ?? '';
  let laneStart = 0;
  let laneWidth = 600;

  const range = () => {
    const [from, to] = [Date.parse(params.from ?? ''), Date.parse(params.to ?? '')];
    if (from < to) return {from, to};
    const span = Math.min(longestRange, (secondsOf(params.range ?? '1h') || 3600) * 1000);
    return {from: daemonNow() - span * (1 - future), to: daemonNow() + span * future};
  };
  const scale = () => ({...range(), start: 0, end: laneWidth});
  const setRange = (/** @type {{from: number, to: number}} */ next) => next.from > 0 && next.to - next.from <= longestRange && app.go('timeline', {...params, range: undefined,
    from: new Date(next.from).toISOString(), to: new Date(next.to).toISOString()}, {replace: true});
  const pan = (/** @type {number} */ share) => {
    const {from, to} = range();
    setRange({from: from + (to - from) * share, to: to + (to - from) * share});
  };
  const zoom = (/** @type {number} */ factor, around = (range().from + range().to) / 2) => setRange(zoomed(range(), factor, around));

  const choices = ranges.map((name) => button(name, {class: 'segment', on: {click: () => app.go('timeline', {task: params.task, range: name}, {replace: true})}}));
  const tools = h('div', {class: 'filters'}, h('div', {class: 'segments', role: 'group', 'aria-label': 'Range'}, ...choices),
      h('div', {class: 'segments', role: 'group', 'aria-label': 'Move'},
          button('', {class: 'segment', 'aria-label': 'Earlier', on: {click: () => pan(-0.5)}}, icon('back')),
          button('−', {class: 'segment', 'aria-label': 'Zoom out', on: {click: () => zoom(2)}}),
          button('+', {class: 'segment', 'aria-label': 'Zoom in', on: {click: () => zoom(0.5)}}),
          button('', {class: 'segment', 'aria-label': 'Later', on: {click: () => pan(0.5)}}, icon('back', 'is-flipped'))),
      h('span', {class: 'dim span-word', role: 'status'}), h('span', {class: 'grow'}),
      tableButton('Tasks in time', ['Task', 'State', 'Created', 'Waited', 'Ran'], () => shown.map((task) => {
        const {waited, ran} = spans(task, daemonNow());
        return [task.id, shownState(task), exact(moment(task.createdAt)), duration(waited), Number.isNaN(ran) ? '–' : duration(ran)];
      })));
  const axis = h('div', {class: 'axis', 'aria-hidden': 'true'});
  const body = h('div', {role: 'list', 'aria-label': 'Tasks in time'});
  const now = h('div', {class: 'now-line', 'aria-hidden': 'true'});
  const arrows = s('svg', {class: 'arrows', 'aria-hidden': 'true'});
  const empty = h('div', {class: 'empty-place'});
  const scroller = h('div', {class: 'scroller timeline', tabindex: '0', role: 'group', 'aria-label': 'Timeline'},
      h('div', {class: 'axis-row', 'data-head': true}, h('div', {class: 'axis-label'}, 'Task'), axis), h('div', {class: 'lanes'}, body, now, arrows), empty);
  fill(main, [tools, scroller, h('div', {class: 'legend'}, legendItem('waiting', 'waiting'), legendItem('running', 'running'), legendItem('completed', 'completed'), legendItem('failed', 'failed'), legendItem('cancelled', 'cancelled'))]);

  const list = new VirtualList({scroller, body, rowHeight: () => rowHeight, keyOf: (/** @type {Task} */ task) => task.id, make: () => barRow(),
    update: (row, task) => row.show(task, scale(), task.id === selected, shown.length)});

  function measure() {
    const box = axis.getBoundingClientRect();
    laneStart = box.left;
    laneWidth = Math.max(50, box.width);
  }

  function showAxis() {
    const {from, to} = range();
    const {step, ticks} = timeTicks(from, to, Math.max(2, Math.floor(laneWidth / 90)));
    const marks = ticks.map((at) => {
      const left = place(scale(), at);
      const label = timeLabel(at, step);
      const mark = h('span', {class: 'tick'}, left + 8 * label.length > laneWidth ? '' : label);  // none that would be cut off
      mark.style.left = `${left}px`;
      return mark;
    });
    fill(axis, marks);
    set(axis, {'data-from': String(from), 'data-to': String(to)});
    const at = place(scale(), daemonNow());
    now.style.transform = `translateX(${at}px)`;
    set(now, {hidden: at < 0 || at > laneWidth});
    setText(/** @type {Element} */ (tools.querySelector('.span-word')), `${timeLabel(from, 1000)} to ${timeLabel(to, 1000)}, ${counted(shown.length, 'task')}`);
    for (const choice of choices) set(choice, {'aria-pressed': String(!params.from && (params.range ?? '1h') === choice.textContent)});
  }

  // From what the selected task comes after, to what comes after it.
  function showArrows() {
    const rows = new Map(shown.map((task, index) => [task.id, index]));
    const here = app.state.tasks.get(selected);
    set(arrows, {height: String(Math.min(shown.length * rowHeight, 30000)), width: String(laneWidth)});
    if (!here || !rows.has(selected)) return fill(arrows, []);
    /** @type {[string, string][]} */
    const pairs = (here.metadata.after ?? []).map((/** @type {string} */ before) => [before, selected]);
    for (const task of shown) if ((task.metadata.after ?? []).includes(selected)) pairs.push([selected, task.id]);
    fill(arrows, pairs.map(([from, to]) => {
      const [first, second] = [app.state.tasks.get(from), app.state.tasks.get(to)];
      const [row, otherRow] = [rows.get(from), rows.get(to)];
      if (!first || !second || row === undefined || otherRow === undefined) return null;
      const x = place(scale(), endOf(first));
      const otherX = place(scale(), spans(second, daemonNow()).started || daemonNow());
      const [y, otherY] = [(row + 0.5) * rowHeight, (otherRow + 0.5) * rowHeight];
      const middle = Math.max(x + 8, otherX - 8);
      return s('path', {class: 'arrow', 'data-from': from, 'data-to': to, d: `M${x} ${y}H${middle}V${otherY}H${otherX}m-5 -4l5 4l-5 4`});
    }));
  }

  function update() {
    measure();
    const {from, to} = range();
    const time = daemonNow();
    shown = app.state.newestFirst.filter((task) => moment(task.createdAt) <= to && (spans(task, time).ended || time) >= from);
    if (!app.state.isComplete) app.loader.more();
    showAxis();
    list.show(shown);
    showArrows();
    const word = shown.length === 0 && (app.state.isComplete || app.state.tasks.size > 0) ? 'none' : '';
    if (empty.dataset.word === word) return;
    empty.dataset.word = word;
    fill(empty, word === '' ? [] : [emptyState('No task in this time', 'Zoom out, or choose a longer range.')]);
  }

  const select = (/** @type {string} */ id) => {
    selected = id;
    app.go('timeline', {...params, task: id}, {replace: true});
  };
  const move = (/** @type {number} */ by) => {
    if (shown.length === 0) return;
    const at = shown.findIndex((task) => task.id === selected);
    const next = at < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, at + by));
    select(/** @type {Task} */ (shown[next]).id);
    list.reveal(next);
    scroller.focus({preventScroll: true});
  };

  /** @type {{x: number, from: number, to: number, isBrush: boolean} | null} */
  let drag = null;
  scroller.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || !(event.target instanceof Element) || event.target.closest('a, button') || event.clientX < laneStart) return;
    drag = {x: event.clientX, ...range(), isBrush: event.target.closest('.axis') !== null};
  });
  scroller.addEventListener('pointermove', (event) => {
    if (!drag || drag.isBrush || Math.abs(event.clientX - drag.x) < 3) return;
    if (!scroller.hasPointerCapture(event.pointerId)) scroller.setPointerCapture(event.pointerId);
    const shift = ((drag.x - event.clientX) / laneWidth) * (drag.to - drag.from);
    setRange({from: drag.from + shift, to: drag.to + shift});
  });
  scroller.addEventListener('pointerup', (event) => {
    const was = drag;
    drag = null;
    if (!was?.isBrush || Math.abs(event.clientX - was.x) < 5) return;
    const ends = [was.x, event.clientX].map((x) => valueAt(scale(), x - laneStart)).sort((a, b) => a - b);
    setRange({from: ends[0] ?? 0, to: ends[1] ?? 0});
  });
  scroller.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, valueAt(scale(), event.clientX - laneStart));
  }, {passive: false});
  body.addEventListener('click', (event) => {
    const row = event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest('[data-row]')) : null;
    if (row && !(/** @type {Element} */ (event.target).closest('a'))) select(row.dataset.row ?? '');
  });
  const observer = new ResizeObserver(() => update());
  observer.observe(axis);
  return {
    update,
    tick: update,
    route: (route) => {
      params = route.params;
      selected = params.task ?? selected;
      update();
    },
    keys: {j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25),
      '+': () => zoom(0.5), '-': () => zoom(2), Enter: () => selected && app.go('task', {}, {id: selected})},
    destroy: () => {
      list.destroy();
      observer.disconnect();
    },
  };
};

/** @param {Task} task */
function endOf(task) {
  const {ended} = spans(task, daemonNow());
  return Number.isNaN(ended) ? daemonNow() : ended;
}

/** @param {string} kind @param {string} word */
const legendItem = (kind, word) => h('span', {class: 'legend-item'}, h('i', {class: `bar-sample is-${kind}`}), word);

function barRow() {
  const link = h('a', {class: 'mono'});
  const mark = h('span', {class: 'lane-state'});
  const waiting = h('i', {class: 'span is-waiting'});
  const running = h('i', {class: 'span'});
  const tries = h('span', {class: 'tries'});
  const bar = h('div', {class: 'bars'}, waiting, running, tries);
  const prompt = h('span', {class: 'lane-prompt'});
  const row = h('div', {role: 'listitem', class: 'lane-row'}, h('div', {class: 'lane-label'}, mark, link, prompt), h('div', {class: 'lane'}, bar));
  const span = (/** @type {HTMLElement} */ element, /** @type {import('../scale.js').Scale} */ scale, /** @type {number} */ from, /** @type {number} */ to) => {
    const isThere = !Number.isNaN(from) && to >= scale.from && from <= scale.to;
    set(element, {hidden: !isThere});
    if (!isThere) return;
    const left = Math.max(-10, place(scale, from));
    element.style.left = `${left}px`;
    element.style.width = `${Math.max(2, Math.min(scale.end + 10, place(scale, to)) - left)}px`;
  };
  return Object.assign(row, {show: (/** @type {Task} */ task, /** @type {import('../scale.js').Scale} */ scale, /** @type {boolean} */ isSelected, /** @type {number} */ total) => {
    const state = shownState(task);
    const {created, started, ended, waited, ran} = spans(task, daemonNow());
    set(row, {'data-row': task.id, class: `lane-row${isSelected ? ' is-active' : ''}`, 'aria-setsize': String(total), 'aria-current': isSelected ? 'true' : null});
    set(link, {href: `#/tasks/${task.id}`, text: task.id});
    if (mark.dataset.is !== state) {
      mark.dataset.is = state;
      fill(mark, [h('span', {class: `state is-${state}`, title: state}, icon(state), h('span', {class: 'visually-hidden'}, state))]);
    }
    setText(prompt, firstLine(task.prompt, 60));
    set(bar, {'data-task': task.id, 'data-state': task.state, title: `${task.id} ${state}, waited ${duration(waited)}${Number.isNaN(ran) ? '' : `, ran ${duration(ran)}`}${task.attempts > 1 ? `, ${task.attempts} attempts` : ''}`});
    const end = Number.isNaN(ended) ? daemonNow() : ended;
    span(waiting, scale, created, Number.isNaN(started) ? end : started);
    span(running, scale, started, end);
    set(running, {class: `span is-${task.state}`});
    set(tries, {hidden: task.attempts < 2});
    if (task.attempts > 1) {
      setText(tries, `×${task.attempts}`);
      tries.style.left = `${Math.max(0, place(scale, end) + 4)}px`;
    }
  }});
}

