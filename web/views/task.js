// One task: all of its record, what it waits for, and its output as it comes.

import {daemonNow} from '../daemon_clock.js';
import {button, fill, h, set, setText, timeElement} from '../dom.js';
import {attempt, showError} from '../feedback.js';
import {icon, stateMark} from '../icons.js';
import {hasEnded, shownState, spans} from '../state.js';
import {canCancel, canRestart, cancelTasks, disableOffline, restartTask} from '../task_actions.js';
import {byOf} from '../task_filter.js';
import {bytes, count, duration, moment, visible, visibleLine} from '../text.js';
import {emptyState} from '../virtual_list.js';
import {outputSection} from './task_output.js';

/** @typedef {import('../state.js').Task} Task */

/** @type {import('../app.js').ViewFactory} */
export const taskView = (app, main, route) => {
  const id = route.id;
  /** @type {any} the whole record, prompt and result included */
  let record = null;
  let isMissing = false;
  let asked = '';
  let isStale = false;  // an event has told of it since it was asked for
  /** @type {any} */
  let explanation = null;
  const notes = h('div', {class: 'notes'});
  app.shell.notes = notes;
  const summary = h('div', {class: 'task-summary'});
  const actions = h('div', {class: 'actions'});
  const why = h('div', {class: 'why', hidden: true});
  const prompt = h('pre', {class: 'prompt', tabindex: '0', role: 'group', 'aria-label': 'What the task says'});
  const facts = h('dl', {class: 'facts'});
  const back = h('a', {class: 'back', href: '#/tasks'}, icon('back'), 'All tasks');
  const output = outputSection(app, id, notes);
  const page = h('div', {class: 'task-page', 'data-task': id},
      h('div', {class: 'task-head'}, back, summary, actions), notes,
      h('div', {class: 'task-columns'},
          h('section', {class: 'task-about', 'aria-label': 'About this task'}, why, h('h2', {class: 'caption'}, 'Prompt'), prompt, h('h2', {class: 'caption'}, 'Record'), facts),
          output.element));
  fill(main, [page]);

  const load = async () => {
    isStale = false;
    try {
      record = await app.call('task.get', {taskId: id});
      isMissing = false;
      explanation = record.state === 'queued' && app.may('task.explain') ? await app.call('task.explain', {taskId: id}) : null;
    } catch (error) {
      if (/** @type {any} */ (error).code === -32000 || /** @type {any} */ (error).code === -32602) isMissing = true;
      else if (/** @type {any} */ (error).code !== undefined) showError(notes, error);
    }
    show();
  };

  // The list's record changes with events; the whole one is asked for then, and when the connection is another.
  const update = () => {
    const known = app.state.tasks.get(id);
    const wanted = `${app.isLive} ${app.state.isComplete || app.state.tasks.size > 0} ${queueWord()}`;
    if ((isStale || wanted !== asked) && app.isLive) {
      asked = wanted;
      load();
    }
    if (known && record) record = {...record, ...known, result: record.result, prompt: record.prompt, metadata: record.metadata};
    show();
    output.update(record);
  };

  // Why a task waits may change whenever something happens in the queue.
  const queueWord = () => (record?.state === 'queued' ? `${app.state.stats?.running} ${app.state.stats?.completed} ${app.state.queue?.paused}` : '');

  function show() {
    set(page, {hidden: isMissing});
    const missing = main.querySelector('.empty');
    if (isMissing && !missing) main.append(emptyState(`There is no ${visibleLine(id)}`, 'It may have been removed, or was never there. ', h('a', {href: '#/tasks'}, 'All tasks')));
    if (!isMissing) missing?.remove();
    if (!record || isMissing) return;
    set(page, {'data-state': record.state});
    showSummary();
    showActions();
    showWhy();
    setText(prompt, visible(record.prompt));
    showFacts();
    disableOffline(main, app.isLive);
  }

  function showSummary() {
    const state = shownState(record);
    const {waited, ran} = spans(record, daemonNow());
    const words = hasEnded(record) ? (Number.isNaN(ran) ? `waited ${duration(waited)}, did not run` : `ran ${duration(ran)}`)
      : record.state === 'running' ? `running for ${duration(ran)}` : `waiting for ${duration(waited)}`;
    const wanted = `${state} ${record.error?.message}`;
    if (summary.dataset.is !== wanted) {
      summary.dataset.is = wanted;
      fill(summary, [stateMark(state), h('span', {class: 'took'}),
        record.error && h('span', {class: 'error-text'}, `${record.error.reason}: ${visibleLine(record.error.message)}`)]);
    }
    setText(/** @type {Element} */ (summary.querySelector('.took')), words);
  }

  function showActions() {
    const wanted = `${record.state} ${record.held} ${app.session?.role}`;
    if (actions.dataset.is === wanted) return;
    actions.dataset.is = wanted;
    const act = (/** @type {string} */ name, /** @type {string} */ drawing, /** @type {() => any} */ work, more = {}) => {
      const pressed = button(name, {'aria-label': `${name} ${id}`, 'data-online': true, ...more}, icon(drawing), name);
      pressed.addEventListener('click', () => attempt(notes, pressed, async () => work(), `${name} ${id}`));
      return pressed;
    };
    fill(actions, [
      record.state === 'queued' && !record.held && app.may('task.hold') && act('Hold', 'held', () => app.call('task.hold', {taskId: id})),
      record.state === 'queued' && record.held && app.may('task.release') && act('Release', 'play', () => app.call('task.release', {taskId: id})),
      canCancel(app, record) && act('Cancel', 'close', () => cancelTasks(app, [id]), {class: 'danger'}),
      canRestart(app, record) && act('Restart', 'restart', () => restartTask(app, id, notes, null), {class: 'primary'}),
    ]);
  }

  function showWhy() {
    const isShown = record.state === 'queued' && explanation !== null && explanation.state === 'queued';
    set(why, {hidden: !isShown});
    if (!isShown) return;
    const wanted = JSON.stringify(explanation);
    if (why.dataset.is === wanted) return;
    why.dataset.is = wanted;
    fill(why, [h('h2', {}, icon('queued'), 'Why it waits'), h('ul', {}, ...explanation.reasons.map((/** @type {any} */ reason) =>
      h('li', {'data-reason': reason.reason}, h('span', {}, visibleLine(reason.text), reason.taskId && ' ', reason.taskId && h('a', {class: 'mono', href: `#/tasks/${reason.taskId}`}, reason.taskId)),
          reason.change && h('span', {class: 'dim'}, visibleLine(reason.change)))))]);
    if (explanation.reasons.length === 0) why.append(h('p', {}, visibleLine(explanation.text)));
  }

  function showFacts() {
    const wanted = JSON.stringify([record, followers().map((task) => task.id)]);
    if (facts.dataset.is === wanted) return;
    facts.dataset.is = wanted;
    fill(facts, factsOf(record, followers()).map(([name, ...values]) => h('div', {}, h('dt', {}, name), h('dd', {}, ...values))));
  }

  const followers = () => app.state.newestFirst.filter((task) => (task.metadata.after ?? []).includes(id) || task.metadata.restartOf === id);

  return {
    update,
    heard: ({params, isHistory}) => {
      if (!isHistory && (params.taskId === id || params.taskIds?.includes(id))) isStale = true;
    },
    tick: () => {
      if (record && !isMissing) showSummary();
    },
    output: (params) => params.taskId === id && output.told(),
    keys: {
      c: () => record && canCancel(app, record) && app.isLive && cancelTasks(app, [id]),
      r: () => record && canRestart(app, record) && app.isLive && restartTask(app, id, notes, null),
      f: () => output.follow(),
      j: () => output.scroll(3), k: () => output.scroll(-3),
      Escape: () => app.go('tasks'),
    },
    destroy: () => output.destroy(),
  };
};

/** @param {string} id */
const taskLink = (id) => h('a', {class: 'mono', href: `#/tasks/${encodeURIComponent(id)}`}, visibleLine(id));

/** @param {string[]} ids */
const taskLinks = (ids) => ids.flatMap((id, i) => (i === 0 ? [taskLink(id)] : [', ', taskLink(id)]));

/** All of a record that is known. @param {any} record @param {Task[]} followers @returns {[string, ...(Node | string)[]][]} */
function factsOf(record, followers) {
  const meta = record.metadata ?? {};
  const known = new Set(['after', 'restartOf', 'by', 'key', 'cwd', 'timeoutSeconds', 'retries', 'automation']);
  const after = /** @type {string[]} */ (meta.after ?? []);
  const next = followers.filter((task) => (task.metadata.after ?? []).includes(record.id)).map((task) => task.id);
  const restarts = followers.filter((task) => task.metadata.restartOf === record.id).map((task) => task.id);
  /** @type {[string, ...(Node | string)[]][]} */
  const list = [['Agent', visibleLine(record.agent)], ['Group', visibleLine(record.group)], ['Priority', String(record.priority)]];
  const when = (/** @type {string} */ name, /** @type {string | null} */ text) => text && list.push([name, timeElement(moment(text))]);
  const say = (/** @type {string} */ name, /** @type {any} */ value) => value !== null && value !== undefined && value !== '' && list.push([name, visibleLine(value)]);
  when('Created', record.createdAt);
  when('Not before', record.notBefore);
  when('Next attempt', record.retryAt);
  when('Started', record.startedAt);
  when('Ended', record.completedAt);
  say('By', byOf(record));
  list.push(['Attempts', record.attemptsNotCounted > 0 ? `${record.attempts}, ${record.attemptsNotCounted} of them not counted` : String(record.attempts)]);
  say('Retries', meta.retries);
  say('Time limit', meta.timeoutSeconds ? duration(meta.timeoutSeconds * 1000) : null);
  say('Exit code', record.exitCode);
  say('Signal', record.signal);
  say('Process', record.pid);
  say('CPU time', record.cpuSeconds === null ? null : duration(record.cpuSeconds * 1000));
  say('Memory', record.maxMemory === null ? null : bytes(record.maxMemory));
  say('Output', record.outputBytes === null ? null : `${bytes(record.outputBytes)} (${count(record.outputBytes)} bytes)`);
  if (record.outputDropped) list.push(['Kept', 'its output was let go to make room']);
  if (after.length > 0) list.push(['After', ...taskLinks(after)]);
  if (next.length > 0) list.push(['Before', ...taskLinks(next)]);
  if (meta.restartOf) list.push(['Restart of', taskLink(meta.restartOf)]);
  if (restarts.length > 0) list.push(['Restarted as', ...taskLinks(restarts)]);
  if (after.length + next.length + restarts.length > 0 || meta.restartOf) list.push(['Graph', h('a', {href: `#/graph?focus=${record.id}`}, 'show')]);
  for (const [name, value] of Object.entries(record.labels ?? {})) list.push([`Label ${visibleLine(name)}`, visibleLine(value)]);
  if (meta.automation) list.push(['Rule', h('a', {href: '#/rules'}, visibleLine(meta.automation.ruleId ?? JSON.stringify(meta.automation)))]);
  say('Folder', meta.cwd);
  say('Key', meta.key);
  for (const [name, value] of Object.entries(meta)) if (!known.has(name)) say(visibleLine(name), typeof value === 'object' ? JSON.stringify(value) : value);
  return list;
}
