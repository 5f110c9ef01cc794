// What the page says to a person: errors beside what caused them, questions, and news for those who listen.

import {button, h, fill} from './dom.js';
import {icon} from './icons.js';
import {count, visible} from './text.js';
import {RpcError} from './connection.js';

const mostListed = 500;  // by name; the rest is counted

/** The daemon's message with what it names. @param {unknown} error */
export function errorText(error) {
  if (!(error instanceof RpcError)) return error instanceof Error ? error.message : String(error);
  const data = error.data && typeof error.data === 'object' ? Object.entries(error.data) : [];
  const details = data.filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
      .map(([name, value]) => `${name} ${value}`).join(', ');
  return visible(`${error.message} (${error.code})${details === '' ? '' : `: ${details}`}`);
}

/** Shows it until it is dismissed. @param {Element} host @param {unknown} error @param {string} [what] that failed */
export function showError(host, error, what = '') {
  const text = what === '' ? errorText(error) : `${what}: ${errorText(error)}`;
  const same = [...host.querySelectorAll('.note.is-error > span')].find((one) => one.textContent === text);
  if (same) return;
  const note = h('div', {class: 'note is-error', role: 'alert'}, icon('warning'), h('span', {}, text));
  note.append(button('', {class: 'icon-button', 'aria-label': 'Dismiss', on: {click: () => note.remove()}}, icon('close')));
  host.append(note);
}

/** Runs what may fail; the button does nothing meanwhile. @param {Element} host @param {HTMLButtonElement | null} pressed
 *  @param {() => Promise<void>} work @param {string} [what] */
export async function attempt(host, pressed, work, what) {
  if (pressed?.getAttribute('aria-busy') === 'true') return;
  pressed?.setAttribute('aria-busy', 'true');
  try {
    await work();
  } catch (error) {
    showError(host, error, what);
  } finally {
    pressed?.removeAttribute('aria-busy');
  }
}

/** The browser gives the focus back when it is closed. @param {HTMLDialogElement} dialog */
export function openDialog(dialog) {
  if (!dialog.isConnected) document.body.append(dialog);
  dialog.showModal();
}

/** @param {string} title @param {string} kind a class */
export function makeDialog(title, kind) {
  const id = `dialog-${kind}`;
  const close = button('', {class: 'icon-button', 'aria-label': 'Close'}, icon('close'));
  const body = h('div', {class: 'dialog-body'});
  const dialog = h('dialog', {class: `dialog ${kind}`, 'aria-labelledby': id},
      h('header', {class: 'dialog-head'}, h('h2', {id}, title), close), body);
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  return {dialog, body};
}

/** @param {number} many @param {string[]} failed */
function restOutcome(many, failed) {
  return failed.length === 0 ? 'done' : `${count(many - failed.length)} done, ${count(failed.length)} not: ${failed[0]}`;
}

/** Asks once, does it, and tells the outcome of each. @param {{title: string, names: string[], action: string,
 *  work: (name: string) => Promise<string>}} question */
export function askThenTell({title, names, action, work}) {
  return new Promise((/** @type {(done: boolean) => void} */ resolve) => {
    const {dialog, body} = makeDialog(title, 'ask');
    const items = names.slice(0, mostListed).map((name) => h('li', {}, h('span', {class: 'mono'}, name), h('span', {class: 'outcome'})));
    const others = names.length - items.length;
    const rest = others > 0 && h('li', {class: 'rest'}, h('span', {}, `and ${count(others)} more`), h('span', {class: 'outcome'}));
    const list = h('ul', {class: 'outcomes', tabindex: '0', 'aria-label': title}, ...items, rest);
    const no = button('Keep', {on: {click: () => dialog.close()}});
    const yes = button(action, {class: 'danger', autofocus: true});
    const foot = h('footer', {class: 'dialog-foot'}, no, yes);
    let isDone = false;
    /** @type {string[]} */
    const failed = [];
    yes.addEventListener('click', async () => {
      isDone = true;
      fill(foot, [button('Done', {class: 'primary', on: {click: () => dialog.close()}})]);
      /** @type {HTMLElement} */ (foot.firstElementChild).focus();
      await Promise.all(names.map(async (name, i) => {
        const outcome = await work(name).then((text) => ({text, isGood: true}), (error) => ({text: errorText(error), isGood: false}));
        const item = items[i];
        if (!item) return void (outcome.isGood || failed.push(`${name}: ${outcome.text}`));
        item.classList.add(outcome.isGood ? 'is-good' : 'is-bad');
        /** @type {HTMLElement} */ (item.lastElementChild).textContent = outcome.text;
      }));
      if (rest) /** @type {HTMLElement} */ (rest.lastElementChild).textContent = restOutcome(others, failed);
    });
    fill(body, [list, foot]);
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(isDone);
    }, {once: true});
    openDialog(dialog);
    yes.focus();
  });
}

/** Tells news to those who listen, at most one a second. */
export class Announcer {
  constructor() {
    this.element = h('div', {class: 'visually-hidden', role: 'status', 'aria-live': 'polite'});
    document.body.append(this.element);
    /** @type {string[]} */
    this.waiting = [];
    this.timer = 0;
  }

  /** @param {string} text */
  say(text) {
    this.waiting.push(text);
    if (this.timer === 0) this.#next();
  }

  #next() {
    const many = this.waiting.length;
    const text = many > 3 ? `${many} pieces of news, the last one: ${this.waiting[many - 1]}` : this.waiting.join('. ');
    this.waiting = [];
    this.element.textContent = text;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      if (this.waiting.length > 0) this.#next();
    }, 1000);
  }
}
