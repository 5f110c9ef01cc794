// Which tasks are shown, and in which order, as the address says. Pure.

import {moment, secondsOf} from './text.js';
import {hasEnded, spans, taskStates} from './state.js';

/** @typedef {import('./state.js').Task} Task */
/** @typedef {{states: string[], agent: string, group: string, text: string, since: number, sort: string, isUp: boolean}} Filter */

export const sorts = /** @type {const} */ (['id', 'state', 'agent', 'created', 'waited', 'ran', 'attempts', 'by']);
export const ages = /** @type {const} */ (['15m', '1h', '6h', '24h', '7d']);

/** @param {Record<string, string>} params @returns {Filter} */
export function filterOf(params) {
  const [sort = '', direction = ''] = (params.sort ?? '').split('.');
  const known = sorts.find((name) => name === sort) ?? 'id';
  return {
    states: (params.state ?? '').split(',').filter((state) => taskStates.some((one) => one === state) || state === 'held'),
    agent: params.agent ?? '',
    group: params.group ?? '',
    text: (params.text ?? '').toLowerCase(),
    since: secondsOf(params.since ?? '') ?? 0,
    sort: known,
    isUp: direction === 'up',
  };
}

/** Whether all tasks have to be here before the answer is right. @param {Filter} filter */
export function needsAll(filter) {
  return filter.sort !== 'id' && filter.sort !== 'created' || filter.isUp;
}

/** @param {Filter} filter */
export function isNarrowed(filter) {
  return filter.states.length > 0 || filter.agent !== '' || filter.group !== '' || filter.text !== '' || filter.since > 0;
}

/** @param {Task} task @param {Filter} filter @param {number} now */
export function matches(task, filter, now) {
  if (filter.states.length > 0 && !filter.states.includes(task.state) && !(task.held && filter.states.includes('held'))) return false;
  if (filter.agent !== '' && task.agent !== filter.agent) return false;
  if (filter.group !== '' && task.group !== filter.group) return false;
  if (filter.since > 0 && lastMoment(task, now) < now - filter.since * 1000) return false;
  return filter.text === '' || searched(task).includes(filter.text);
}

// A task belongs to a time when something happened to it then.
/** @param {Task} task @param {number} now */
function lastMoment(task, now) {
  return hasEnded(task) ? moment(task.completedAt ?? task.createdAt) : now;
}

/** @param {Task} task */
function searched(task) {
  const labels = Object.entries(task.labels).map(([name, value]) => `${name}=${value}`).join(' ');
  return `${task.id} ${task.agent} ${task.group} ${labels} ${task.metadata.by ?? ''} ${task.error?.reason ?? ''} ${task.prompt}`
      .toLowerCase();
}

/** @param {Task} task @param {string} sort @param {number} now @returns {string | number} */
function sortKey(task, sort, now) {
  if (sort === 'state') return taskStates.indexOf(task.state);
  if (sort === 'agent') return task.agent;
  if (sort === 'waited') return spans(task, now).waited;
  if (sort === 'ran') return spans(task, now).ran || 0;
  if (sort === 'attempts') return task.attempts;
  if (sort === 'by') return String(byOf(task));
  return task.number;
}

/** Who asked for it. @param {Task} task */
export function byOf(task) {
  const rule = task.metadata.automation?.ruleId ?? task.metadata.ruleId;
  return rule ? `rule:${rule}` : task.metadata.by ?? '';
}

/** @param {Task[]} newestFirst @param {Filter} filter @param {number} now */
export function chosen(newestFirst, filter, now) {
  const found = isNarrowed(filter) ? newestFirst.filter((task) => matches(task, filter, now)) : newestFirst;
  if (filter.sort === 'id' || filter.sort === 'created') return filter.isUp ? [...found].reverse() : found;
  const keyed = found.map((task) => ({task, key: sortKey(task, filter.sort, now)}));
  const sign = filter.isUp ? 1 : -1;
  keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : b.task.number - a.task.number));
  return keyed.map((one) => one.task);
}
