// What the page knows of the daemon, and how events change it. Pure: no clock, no connection, no document.

import {moment} from './text.js';

/** @typedef {import('./event_cursor.js').DaemonEvent} DaemonEvent */
/** @typedef {import('./event_cursor.js').Gap} Gap */
/** A task as `task.list` has it, without its result.
 *  @typedef {{id: string, number: number, prompt: string, agent: string, group: string, priority: number, state: TaskState,
 *    held: boolean, createdAt: string, notBefore: string | null, retryAt: string | null, startedAt: string | null,
 *    completedAt: string | null, pid: number | null, exitCode: number | null, signal: string | null,
 *    error: {reason: string, message: string} | null, attempts: number, cpuSeconds: number | null, maxMemory: number | null,
 *    outputBytes: number | null, labels: Record<string, string>, metadata: Record<string, any>}} Task */
/** @typedef {'queued' | 'running' | 'completed' | 'failed' | 'cancelled'} TaskState */
/** A gap stands between two events. @typedef {{gap: Gap} | {event: DaemonEvent}} LogEntry */

export const taskStates = /** @type {TaskState[]} */ (['queued', 'running', 'completed', 'failed', 'cancelled']);
export const mostEvents = 5000;
export const mostPausedEvents = 100000;
const mostTasks = 25000;
export const pageSize = 1000;

/** Everything that `events.subscribe` may be asked for, but the output of tasks. */
export const eventKinds = ['taskQueued', 'taskStarted', 'taskCompleted', 'taskFailed', 'taskCancelled', 'taskHeld',
  'taskReleased', 'taskEdited', 'tasksRemoved', 'queuePaused', 'queueResumed', 'agentHeld', 'agentReleased',
  'automationFired', 'automationChanged', 'workerChanged', 'daemonStopping', 'notice', 'settingsChanged', 'approvalNeeded', 'approvalDenied', 'chainStopped',
  'runFailed'];

const changes = /** @type {(keyof Task)[]} */ (['state', 'attempts', 'retryAt', 'startedAt', 'pid', 'completedAt', 'exitCode',
  'signal', 'error', 'cpuSeconds', 'maxMemory', 'outputBytes']);
const taskEvents = new Set(['taskQueued', 'taskStarted', 'taskCompleted', 'taskFailed', 'taskCancelled']);

/** @param {string} id */
export function numberOf(id) {
  return Number(/^task-(\d+)$/.exec(id)?.[1] ?? NaN);
}

/** @param {{state: string}} task */
export function hasEnded(task) {
  return task.state !== 'queued' && task.state !== 'running';
}

/** What people call its state: a queued task that is held does not just wait. @param {{state: string, held?: boolean}} task */
export function shownState(task) {
  return task.state === 'queued' && task.held ? 'held' : task.state;
}

/** A record as the daemon gave it, kept small. @param {any} record @returns {Task} */
export function taskOf(record) {
  const {result: _, ...kept} = record;
  return {...kept, number: numberOf(record.id), labels: record.labels ?? {}, metadata: record.metadata ?? {}};
}

/** When it waited and ran, as far as that is known, in milliseconds. @param {Task} task @param {number} now */
export function spans(task, now) {
  const created = moment(task.createdAt);
  const started = task.state === 'queued' ? NaN : moment(task.startedAt);  // else it is that of the attempt before
  const ended = moment(task.completedAt);
  const waitedUntil = Number.isNaN(started) ? (Number.isNaN(ended) ? now : ended) : started;
  const end = Number.isNaN(ended) ? now : ended;
  return {created, started, ended, waited: waitedUntil - created, ran: Number.isNaN(started) ? NaN : end - started};
}

export class State {
  /** @type {Map<string, Task>} */
  tasks = new Map();
  /** @type {Task[] | null} newest first, if that is known */
  sorted = null;
  isComplete = false;  // there are no older tasks than those here
  /** @type {Set<string>} tasks that events told of and nobody has asked for yet */
  unknown = new Set();
  /** @type {Record<string, number> | null} */
  stats = null;
  /** @type {LogEntry[]} */
  log = [];
  heard = 0;  // events in the log that there ever were
  keeps = mostEvents;  // so many of the log; more while somebody has paused it, for whom nothing is to be lost
  /** @type {any} */
  automation = null;
  /** @type {any} */
  queue = null;
  /** @type {boolean | null} whether the queue is paused, as far as events have told */
  isPaused = null;
  /** @type {any} */
  status = null;
  /** @type {Set<string>} what has to be asked for again: stats, automation, queue, status */
  stale = new Set();

  /** As if nothing had ever been heard. */
  clear() {
    this.forgetTasks();
    this.log = [];
    this.heard = 0;
    this.stats = this.automation = this.queue = this.status = this.isPaused = null;
    this.stale.clear();
  }

  forgetTasks() {
    this.tasks.clear();
    this.unknown.clear();
    this.sorted = null;
    this.isComplete = false;
  }

  /** A page of `task.list`, newest first. @param {any[]} records @param {boolean} isOldest nothing comes behind it */
  takePage(records, isOldest) {
    for (const record of records) this.#put(taskOf(record));
    if (isOldest || this.tasks.size >= mostTasks) this.isComplete = true;
  }

  /** @param {any} record */
  takeTask(record) {
    this.#put(taskOf(record));
    if (this.tasks.size > mostTasks + pageSize) this.#letGo();
  }

  // The oldest that have ended, in portions: a tab may be open for weeks.
  #letGo() {
    for (const {id} of this.newestFirst.slice(mostTasks).filter(hasEnded)) this.tasks.delete(id);
    this.sorted = null;
  }

  /** @param {string} id */
  forgetTask(id) {
    this.unknown.delete(id);
    if (this.tasks.delete(id)) this.sorted = null;
  }

  /** @param {Task} task */
  #put(task) {
    this.unknown.delete(task.id);
    if (!this.tasks.has(task.id)) this.sorted = null;
    else if (this.sorted) this.sorted[this.#place(task.number)] = task;
    this.tasks.set(task.id, task);
  }

  /** @param {number} number */
  #place(number) {
    const sorted = /** @type {Task[]} */ (this.sorted);
    let low = 0;
    let high = sorted.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (/** @type {Task} */ (sorted[middle]).number > number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** All tasks that are here, newest first. */
  get newestFirst() {
    this.sorted ??= [...this.tasks.values()].sort((a, b) => b.number - a.number);
    return this.sorted;
  }

  /** The id to go on from, for older ones. */
  get oldestId() {
    const all = this.newestFirst;
    return all[all.length - 1]?.id;
  }

  /** @param {DaemonEvent} event */
  apply(event) {
    this.#note({event});
    if (event.isHistory) return;
    const {kind, params} = event;
    if (taskEvents.has(kind)) this.#applyToTask(kind, params);
    else if (kind === 'taskHeld' || kind === 'taskReleased') this.#change(params.taskId, {held: kind === 'taskHeld'});
    else if (kind === 'taskEdited') this.#miss(params.taskId);
    else if (kind === 'tasksRemoved') for (const id of params.taskIds ?? []) this.forgetTask(id);
    if (/^queue(Paused|Resumed)$/.test(kind) && !params.group) this.isPaused = kind === 'queuePaused';
    if (kind.startsWith('task')) this.stale.add('stats');
    if (/^(queue|agent)/.test(kind) || kind === 'settingsChanged') this.stale.add('queue');
    if (/^(automation|approval|chain|run|notice)/.test(kind) || kind === 'settingsChanged') this.stale.add('automation');
    if (kind === 'settingsChanged' || kind === 'daemonStopping') this.stale.add('status');
  }

  /** @param {Gap} gap */
  applyGap(gap) {
    this.#note({gap});
  }

  /** @param {LogEntry} entry */
  #note(entry) {
    this.log.push(entry);
    this.heard += 1;
    // In portions: a shift for each event would move all others.
    if (this.log.length <= this.keeps + 500) return;
    const gone = this.log.splice(0, this.log.length - this.keeps);
    const gap = this.keeps > mostEvents ? gapOf(gone) : null;
    if (gap) this.log.unshift({gap});
  }

  /** The newest events. */
  get events() {
    return this.log.length > this.keeps ? this.log.slice(-this.keeps) : this.log;
  }

  /** @param {string} kind @param {Record<string, any>} params */
  #applyToTask(kind, params) {
    if (!this.tasks.has(params.taskId)) return this.#miss(params.taskId);
    /** @type {Record<string, any>} */
    const change = {};
    for (const name of changes) {
      if (name in params) change[name] = params[name];
    }
    if (kind === 'taskQueued') Object.assign(change, {retryAt: params.retryAt ?? null, completedAt: null});
    if (kind === 'taskStarted') Object.assign(change, {retryAt: null, completedAt: null, exitCode: null, signal: null, error: null});
    if (kind === 'taskCompleted') change.error = null;
    if (kind !== 'taskQueued' && kind !== 'taskStarted') change.held = false;
    this.#change(params.taskId, change);
  }

  // Older ones than those that were loaded are not missed: pages of older ones go on from the oldest.
  /** @param {string} id */
  #miss(id) {
    const isInReach = this.isComplete || this.tasks.size === 0 || numberOf(id) >= numberOf(this.oldestId ?? '');
    if (isInReach) this.unknown.add(id);
  }

  /** @param {string} id @param {Record<string, any>} change */
  #change(id, change) {
    const task = this.tasks.get(id);
    if (task) this.#put({...task, ...change});
  }
}

/** What stands for entries that the page had no room for. @param {LogEntry[]} entries @returns {Gap | null} */
function gapOf(entries) {
  const numbers = entries.flatMap((entry) => ('gap' in entry ? [entry.gap.from, entry.gap.to] : entry.event.seq ?? []));
  if (numbers.length === 0) return null;
  return {from: /** @type {number} */ (numbers[0]), to: /** @type {number} */ (numbers[numbers.length - 1]), isOurs: true};
}

/** Firings that wait for somebody's word, the oldest first. @param {any} automation */
export function approvalsOf(automation) {
  return (automation?.recent ?? []).filter((/** @type {any} */ firing) => firing.outcome === 'held' && firing.would)
      .sort((/** @type {any} */ a, /** @type {any} */ b) => (a.at < b.at ? -1 : 1));
}

/** The arrows between tasks that are here. @param {Iterable<Task>} tasks */
export function edgesOf(tasks) {
  /** @type {import('./graph_layout.js').Edge[]} */
  const edges = [];
  for (const task of tasks) {
    for (const before of task.metadata.after ?? []) edges.push({from: before, to: task.id, kind: 'after'});
    if (task.metadata.restartOf) edges.push({from: task.metadata.restartOf, to: task.id, kind: 'restartOf'});
  }
  return edges;
}
