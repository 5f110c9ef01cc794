// What can be done to tasks, the same in every view.

import {button, set} from './dom.js';
import {askThenTell, attempt} from './feedback.js';
import {icon} from './icons.js';
import {counted} from './text.js';
import {hasEnded} from './state.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {import('./state.js').Task} Task */

/** Asks once, and tells the outcome of each. @param {App} app @param {string[]} ids */
export function cancelTasks(app, ids) {
  if (ids.length === 0) return Promise.resolve(false);
  const action = ids.length === 1 ? `Cancel ${ids[0]}` : `Cancel ${counted(ids.length, 'task')}`;
  return askThenTell({title: `${action}?`, names: ids, action, work: async (taskId) => {
    await app.call('task.cancel', {taskId});
    return 'cancelled';
  }});
}

/** The new task is shown. @param {App} app @param {string} id @param {Element} host for errors @param {HTMLButtonElement | null} pressed */
export function restartTask(app, id, host, pressed) {
  return attempt(host, pressed, async () => {
    const {taskId} = await app.call('task.restart', {taskId: id});
    app.go('task', {}, {id: taskId});
  }, `Restart ${id}`);
}

/** @param {App} app @param {Task} task */
export function canCancel(app, task) {
  return app.may('task.cancel') && !hasEnded(task);
}

/** @param {App} app @param {Task} task */
export function canRestart(app, task) {
  return app.may('task.restart') && hasEnded(task);
}

/** A button that is a drawing, for rows. @param {string} label @param {string} drawing @param {() => void} pressed */
export function rowButton(label, drawing, pressed) {
  return button('', {class: 'icon-button', 'aria-label': label, title: label, on: {click: (/** @type {Event} */ event) => {
    event.stopPropagation();
    pressed();
  }}}, icon(drawing));
}

/** Buttons that need the daemon do nothing without it. @param {Element} root @param {boolean} isLive */
export function disableOffline(root, isLive) {
  for (const element of root.querySelectorAll('[data-online]')) set(element, {disabled: !isLive});
}
