// All tasks: a table to scan, with filters that live in the address.

import {daemonNow} from '../daemon_clock.js';
import {button, fill, h, set, setText, setTime} from '../dom.js';
import {icon} from '../icons.js';
import {ages, byOf, chosen, filterOf, isNarrowed, needsAll, sorts} from '../task_filter.js';
import {hasEnded, shownState, spans, taskStates} from '../state.js';
import {canCancel, canRestart, cancelTasks, disableOffline, restartTask, rowButton} from '../task_actions.js';
import {count, counted, duration, firstLine, moment, visibleLine} from '../text.js';
import {VirtualList, emptyState} from '../virtual_list.js';
import {queueBar} from './queue_bar.js';

/** @typedef {import('../state.js').Task} Task */

const narrow = matchMedia('(max-width: 719px)');
const rowHeight = () => (narrow.matches ? 64 : 36);
const columns = /** @type {[string, string][]} */ ([['id', 'Task'], ['state', 'State'], ['agent', 'Agent'], ['', 'Prompt'],
  ['created', 'Created'], ['waited', 'Waited'], ['ran', 'Ran'], ['attempts', 'Tries'], ['by', 'By'], ['', '']]);

/** @type {import('../app.js').ViewFactory} */
export const tasksView = (app, main, firstRoute) => {
  let params = firstRoute.params;
  let filter = filterOf(params);
  /** @type {Task[]} */
  let shown = [];
  let active = sessionStorage.getItem('duet-rpc.active') ?? '';
  /** @type {Set<string>} */
  const selected = new Set();
  const notes = h('div', {class: 'notes'});
  app.shell.notes = notes;

  const change = (/** @type {Record<string, string>} */ part) => app.go('tasks', {...params, ...part}, {replace: true});

  const counts = h('div', {class: 'counts', role: 'group', 'aria-label': 'States'}, ...[...taskStates].map((state) =>
    h('button', {type: 'button', class: `count is-${state}`, 'data-count': state, on: {click: () => toggleState(state)}},
        icon(state), h('b', {}, '–'), h('span', {}, state))));
  const toggleState = (/** @type {string} */ state) => {
    const states = new Set(filter.states);
    if (!states.delete(state)) states.add(state);
    change({state: [...states].join(',')});
  };
  const text = h('input', {type: 'search', 'data-filter': true, placeholder: 'Filter by text', 'aria-label': 'Filter by text', autocomplete: 'off'});
  text.addEventListener('input', () => change({text: text.value}));
  const select = (/** @type {string} */ label, /** @type {string} */ name) => {
    const control = h('select', {'aria-label': label});
    control.addEventListener('change', () => change({[name]: control.value}));
    return control;
  };
  const agent = select('Agent', 'agent');
  const since = select('Time', 'since');
  const sort = select('Order', 'sort');
  const clear = button('Clear filters', {class: 'quiet', on: {click: () => app.go('tasks', {}, {replace: true})}});
  fill(since, [h('option', {value: ''}, 'any time'), ...ages.map((age) => h('option', {value: age}, `last ${age}`))]);
  fill(sort, [h('option', {value: ''}, 'newest first'), ...sorts.flatMap((name) => ['', '.up'].map((end) =>
    h('option', {value: name + end}, `${columns.find(([key]) => key === name)?.[1] ?? name} ${end ? '↑' : '↓'}`))).slice(1)]);
  const filters = h('div', {class: 'filters', role: 'search'}, text, agent, since, h('span', {class: 'narrow-only'}, sort), clear);
  const queue = queueBar(app, notes);

  const selection = h('div', {class: 'selection', hidden: true, role: 'group', 'aria-label': 'Selected tasks'});
  const headCells = columns.map(([key, label]) => {
    const cell = h('div', {role: 'columnheader', class: `cell-${key || label || 'act'}`.toLowerCase()});
    if (key === '') cell.append(label === '' ? h('span', {class: 'visually-hidden'}, 'Actions') : label);
    else cell.append(button(label, {class: 'sort', on: {click: () => sortBy(key)}}, label, icon('down', 'sort-mark')));
    return cell;
  });
  const all = h('input', {type: 'checkbox', 'aria-label': 'Select all that can be cancelled', on: {change: () => {
    selected.clear();
    if (all.checked) for (const task of shown) if (!hasEnded(task)) selected.add(task.id);
    update();
  }}});
  const head = h('div', {role: 'row', class: 'row head', 'data-head': true, 'aria-rowindex': '1'},
      h('div', {role: 'columnheader', class: 'cell-pick'}, h('label', {class: 'hit'}, all)), ...headCells);
  const body = h('div', {role: 'rowgroup'});
  const grid = h('div', {role: 'grid', class: 'grid tasks', tabindex: '0', 'aria-label': 'Tasks', 'aria-multiselectable': 'true'},
      h('div', {role: 'rowgroup', class: 'head-group'}, head), body);
  const empty = h('div', {class: 'empty-place'});
  const scroller = h('div', {class: 'scroller'}, grid, empty);
  const foot = h('p', {class: 'foot', role: 'status'});
  fill(main, [h('div', {class: 'bar'}, counts, queue.element), filters, notes, selection, scroller, foot]);

  const sortBy = (/** @type {string} */ key) => {
    const isSame = filter.sort === key || (key === 'id' && filter.sort === 'id');
    const isUp = isSame ? !filter.isUp : false;
    change({sort: key === 'id' && !isUp ? '' : isUp ? `${key}.up` : key});
  };

  const list = new VirtualList({scroller, body, rowHeight, keyOf: (/** @type {Task} */ task) => task.id,
    make: () => taskRow(app, notes, pick), update: (row, task, index) => row.show(task, index, task.id === active, selected.has(task.id)),
    onEnd: () => app.loader.more()});

  function pick(/** @type {string} */ id, /** @type {boolean} */ isPicked) {
    if (isPicked) selected.add(id);
    else selected.delete(id);
    update();
  }

  const move = (/** @type {number} */ step) => {
    if (shown.length === 0) return;
    const at = shown.findIndex((task) => task.id === active);
    const next = at < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, at + step));
    active = /** @type {Task} */ (shown[next]).id;
    sessionStorage.setItem('duet-rpc.active', active);
    list.reveal(next);
    grid.focus({preventScroll: true});
    set(grid, {'aria-activedescendant': `row-${active}`});
  };
  const current = () => shown.find((task) => task.id === active);
  const cancel = () => {
    const ids = selected.size > 0 ? [...selected] : current() && canCancel(app, /** @type {Task} */ (current())) ? [active] : [];
    if (app.may('task.cancel') && app.isLive) cancelTasks(app, ids).then((isDone) => {
      if (isDone) selected.clear();
      update();
    });
  };
  /** @type {Record<string, () => void>} */
  const keys = {
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), PageDown: () => move(20), PageUp: () => move(-20),
    Home: () => move(-Infinity), End: () => move(shown.length),
    Enter: () => current() && app.go('task', {}, {id: active}),
    x: () => current() && pick(active, !selected.has(active)),
    c: cancel,
    r: () => {
      const task = current();
      if (task && canRestart(app, task) && app.isLive) restartTask(app, task.id, notes, null);
    },
  };
  keys.Home = () => move(-shown.length);

  const updateFilters = () => {
    if (document.activeElement !== text) text.value = params.text ?? '';
    const agents = [...new Set([...app.state.newestFirst.map((task) => task.agent), ...(filter.agent ? [filter.agent] : [])])].sort();
    const wanted = agents.join('\n');
    if (agent.dataset.known !== wanted) {
      agent.dataset.known = wanted;
      fill(agent, [h('option', {value: ''}, 'all agents'), ...agents.map((name) => h('option', {value: name}, visibleLine(name)))]);
    }
    agent.value = filter.agent;
    since.value = params.since ?? '';
    sort.value = params.sort ?? '';
    set(clear, {hidden: !isNarrowed(filter)});
    headCells.forEach((cell, i) => {
      const key = columns[i]?.[0];
      if (key) set(cell, {'aria-sort': filter.sort === key ? (filter.isUp ? 'ascending' : 'descending') : 'none'});
    });
    for (const one of counts.children) {
      const state = /** @type {HTMLElement} */ (one).dataset.count ?? '';
      set(one, {'aria-pressed': String(filter.states.includes(state))});
      setText(/** @type {Element} */ (one.children[1]), app.state.stats ? count(app.state.stats[state] ?? 0) : '–');
    }
  };

  const updateSelection = () => {
    for (const id of selected) {
      const task = app.state.tasks.get(id);
      if (!task) selected.delete(id);
    }
    set(selection, {hidden: selected.size === 0});
    if (selected.size === 0) return;
    fill(selection, [h('span', {}, `${count(selected.size)} selected`),
      app.may('task.cancel') && button(`Cancel ${counted(selected.size, 'task')}`, {class: 'danger small', disabled: !app.isLive, on: {click: cancel}}),
      button('Select none', {class: 'quiet small', on: {click: () => {
        selected.clear();
        update();
      }}})]);
  };

  const updateFoot = () => {
    const {state} = app;
    const total = state.stats?.total;
    const isPart = !state.isComplete && state.tasks.size > 0;
    setText(foot, state.tasks.size === 0 ? '' : `${counted(shown.length, 'task')}${isNarrowed(filter) ? ` of ${count(state.tasks.size)}` : ''}` +
        (isPart ? `, ${count(state.tasks.size)} of ${count(total ?? state.tasks.size)} loaded` : ''));
    const isEmpty = shown.length === 0 && (state.isComplete || state.tasks.size > 0);
    const word = !isEmpty ? '' : isNarrowed(filter) ? 'filtered' : 'none';
    if (empty.dataset.word === word) return;
    empty.dataset.word = word;
    fill(empty, word === '' ? [] : word === 'filtered'
      ? [emptyState('No task is like that', 'Take a filter away, or ', button('clear them all', {class: 'link', on: {click: () => app.go('tasks', {}, {replace: true})}}), '.')]
      : [emptyState('No tasks yet', app.may('task.submit') ? 'Submit one here, or in a terminal: ' : 'In a terminal: ', h('code', {}, 'duet-rpc task submit "Fix the tests"'))]);
  };

  function update() {
    shown = chosen(app.state.newestFirst, filter, daemonNow());
    if ((needsAll(filter) || (isNarrowed(filter) && shown.length < 200)) && !app.state.isComplete) app.loader.more();
    set(grid, {'aria-rowcount': String(shown.length + 1)});
    all.checked = selected.size > 0;
    updateFilters();
    updateSelection();
    queue.update();
    list.show(shown);
    updateFoot();
    disableOffline(main, app.isLive);
  }

  const resize = () => list.render();
  narrow.addEventListener('change', resize);
  return {
    update,
    keys,
    route: (route) => {
      params = route.params;
      filter = filterOf(params);
      update();
    },
    tick: () => list.render(),
    destroy: () => {
      list.destroy();
      narrow.removeEventListener('change', resize);
    },
  };
};

/** @param {import('../app.js').App} app @param {HTMLElement} notes @param {(id: string, isPicked: boolean) => void} pick */
function taskRow(app, notes, pick) {
  const box = h('input', {type: 'checkbox'});
  const cell = (/** @type {string} */ name, /** @type {Node[]} */ ...children) => h('div', {role: 'gridcell', class: `cell-${name}`}, ...children);
  const link = h('a', {class: 'mono'});
  const parts = {state: cell('state'), agent: cell('agent'), prompt: cell('prompt'), waited: cell('waited'), ran: cell('ran'),
    attempts: cell('attempts'), by: cell('by'), act: cell('act')};
  const created = h('time', {class: 'when'});
  const row = h('div', {role: 'row', class: 'row'}, cell('pick', h('label', {class: 'hit'}, box)), cell('id', link), parts.state, parts.agent,
      parts.prompt, cell('created', created), parts.waited, parts.ran, parts.attempts, parts.by, parts.act);
  let id = '';
  let kind = '';
  row.addEventListener('click', (event) => {
    if (event.target instanceof Element && event.target.closest('a, button, input, label')) return;
    if (getSelection()?.toString()) return;
    app.go('task', {}, {id});
  });
  box.addEventListener('change', () => pick(id, box.checked));
  /** @type {Task | null} */
  let last = null;
  return Object.assign(row, {show: (/** @type {Task} */ task, /** @type {number} */ index, /** @type {boolean} */ isActive, /** @type {boolean} */ isPicked) => {
    set(row, {'aria-rowindex': String(index + 2), 'aria-selected': String(isPicked), class: `row${isActive ? ' is-active' : ''}`});
    if (box.checked !== isPicked) box.checked = isPicked;
    if (last !== task) showTask(task);
    const {waited, ran} = spans(task, daemonNow());
    setText(parts.waited, duration(waited));
    setText(parts.ran, Number.isNaN(ran) ? '–' : duration(ran));
    setTime(created, moment(task.createdAt));
  }});

  function showTask(/** @type {Task} */ task) {
    last = task;
    id = task.id;
    const state = shownState(task);
    set(row, {id: `row-${id}`, 'data-task': id, 'data-state': task.state});
    set(link, {href: `#/tasks/${id}`, text: id});
    set(box, {'aria-label': `Select ${id}`});
    if (parts.state.dataset.is !== state) {
      parts.state.dataset.is = state;
      fill(parts.state, [h('span', {class: `state is-${state}`}, icon(state), h('span', {}, state))]);
    }
    setText(parts.agent, visibleLine(task.agent));
    setText(parts.prompt, firstLine(task.prompt));
    setText(parts.attempts, String(task.attempts));
    setText(parts.by, visibleLine(byOf(task)));
    const wanted = `${id} ${canCancel(app, task) ? 'cancel' : canRestart(app, task) ? 'restart' : ''}`;
    if (kind === wanted) return;
    kind = wanted;
    const act = canCancel(app, task) ? rowButton(`Cancel ${id}`, 'close', () => cancelTasks(app, [id]))
      : canRestart(app, task) ? rowButton(`Restart ${id}`, 'restart', () => restartTask(app, id, notes, null)) : null;
    if (act) set(act, {'data-online': true, disabled: !app.isLive});
    fill(parts.act, [act]);
  }
}

