// Keys that work without the mouse. Never while somebody types, never with Ctrl, Alt or Meta, and not at all if switched off.

import {h, fill} from './dom.js';
import {makeDialog, openDialog} from './feedback.js';
import {preference} from './preferences.js';
import {openSubmit} from './submit_dialog.js';

/** @typedef {import('./app.js').App} App */

const viewKeys = /** @type {Record<string, string>} */ ({t: 'tasks', l: 'timeline', g: 'graph', e: 'events', r: 'rules',
  s: 'servers', h: 'health'});
const prefixTime = 1500;

const listed = [
  ['?', 'this list'], ['/', 'to the filter'], ['j  k', 'down, up'], ['Enter', 'open'], ['x', 'select'], ['n', 'new task'],
  ['c', 'cancel'], ['r', 'restart'], ['f', 'follow the output'], ['Esc', 'close, and back to where you were'],
  ...Object.entries(viewKeys).map(([key, view]) => [`g ${key}`, `to ${view}`]),
];

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
      !(target instanceof HTMLInputElement && ['checkbox', 'radio', 'button'].includes(target.type));
}

export class Keys {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.prefixUntil = 0;
    document.addEventListener('keydown', (event) => this.#take(event));
  }

  get areOn() {
    return preference('keys', 'on') === 'on';
  }

  /** @param {KeyboardEvent} event */
  #take(event) {
    if (!this.areOn || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Escape' && isTyping(event.target) && !document.querySelector('dialog[open]')) {
      /** @type {HTMLElement} */ (event.target).blur();
      this.app.shell.main.focus({preventScroll: true});
      return;
    }
    if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
    if (document.documentElement.dataset.connection === 'signed-out') return;
    // A button or link that has the focus is pressed, not the row.
    if (event.key === 'Enter' && event.target instanceof Element && event.target.closest('a, button, summary, [role=switch]')) return;
    if (this.#act(event.key)) event.preventDefault();
  }

  /** @param {string} key */
  #act(key) {
    const {app} = this;
    if (this.prefixUntil > Date.now()) {
      this.prefixUntil = 0;
      const view = viewKeys[key];
      if (view) app.go(view);
      return view !== undefined;
    }
    const own = app.view?.keys?.[key];
    if (own) own();
    else if (key === 'g') this.prefixUntil = Date.now() + prefixTime;
    else if (key === '?') openKeys();
    else if (key === 'n' && app.may('task.submit')) openSubmit(app);
    else if (key === '/') return this.#focusFilter();
    else return false;
    return true;
  }

  #focusFilter() {
    const field = /** @type {HTMLInputElement | null} */ (this.app.shell.main.querySelector('[data-filter]'));
    field?.focus();
    field?.select();
    return field !== null;
  }
}

export function openKeys() {
  const {dialog, body} = makeDialog('Keys', 'keys');
  fill(body, [h('dl', {class: 'keys-list'}, ...listed.map(([key, what]) => h('div', {},
      h('dt', {}, ...(key ?? '').split(/ +/).map((one) => h('kbd', {}, one))), h('dd', {}, what))))]);
  dialog.addEventListener('close', () => dialog.remove());
  openDialog(dialog);
}
