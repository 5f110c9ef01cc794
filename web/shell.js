// What stands around every view: navigation, the state of the connection, who is signed in.

import {button, fill, h, set, setText} from './dom.js';
import {icon} from './icons.js';
import {Keys} from './keys.js';
import {openSettings} from './settings_dialog.js';
import {openSubmit} from './submit_dialog.js';
import {loginCode, views} from './router.js';
import {Refused, byCertificate, signIn} from './session.js';
import {count, relative, visibleLine} from './text.js';

/** @typedef {import('./app.js').App} App */

export const titles = /** @type {Record<string, string>} */ ({tasks: 'Tasks', task: 'Task', timeline: 'Timeline',
  graph: 'Graph', events: 'Events', rules: 'Rules', servers: 'Servers', health: 'Health', 'sign-in': 'Sign in'});

export class Shell {
  main = /** @type {HTMLElement} */ (document.querySelector('main'));
  badges = /** @type {Map<string, HTMLElement>} */ (new Map());
  loginError = '';
  /** @type {HTMLElement | null} where the view that is shown wants to be told something */
  notes = null;
  project = h('span', {class: 'project'});
  who = h('p', {class: 'who'});
  title = h('h1', {tabindex: '-1'});
  state = h('span', {class: 'connection'}, h('span', {class: 'dot', 'aria-hidden': 'true'}), h('span', {class: 'word'}));
  paused = h('span', {class: 'chip is-warn', hidden: true}, icon('pause'), 'Queue paused');

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.keys = new Keys(app);
    this.links = new Map(views.map((view) => [view, this.#link(view)]));
    this.nav = h('nav', {class: 'nav', 'aria-label': 'Views'}, ...this.links.values());
    this.out = button('', {class: 'quiet', on: {click: () => app.signOut()}}, h('span', {}, 'Sign out'));
    this.retry = button('Retry now', {class: 'small', hidden: true, on: {click: () => app.connection.retryNow()}});
    this.reload = button('A new version is there: reload', {class: 'small primary', hidden: true, on: {click: () => location.reload()}});
    this.submit = button('', {class: 'primary opener', hidden: true, on: {click: () => openSubmit(app)}}, icon('plus'),
        h('span', {}, 'Submit task'));
    const settings = button('', {class: 'icon-button', 'aria-label': 'Settings', title: 'Settings',
      on: {click: () => openSettings(app)}}, icon('gear'));
    const side = h('div', {class: 'side'}, h('div', {class: 'brand'}, brandMark(), this.project), this.nav,
        h('div', {class: 'session'}, this.who, this.out));
    const top = h('header', {class: 'top'}, this.title, h('div', {class: 'top-state'}, this.paused, this.reload, this.retry, this.state),
        this.submit, settings);
    fill(/** @type {HTMLElement} */ (document.querySelector('.frame')), [side, h('div', {class: 'stage'}, top, this.main)]);
  }

  /** @param {string} view */
  #link(view) {
    const badge = h('span', {class: 'badge', hidden: true});
    this.badges.set(view, badge);
    return h('a', {href: `#/${view}`, 'data-nav': view}, icon(view), h('span', {class: 'label'}, titles[view]), badge);
  }

  /** An empty place for another view. @param {string} view */
  freshMain(view) {
    const main = h('main', {id: 'main', tabindex: '-1', 'data-view': view});
    this.main.replaceWith(main);
    this.main = main;
    setText(this.title, titles[view] ?? view);
    return main;
  }

  /** @param {string} id */
  tellSubmitted(id) {
    const note = h('div', {class: 'note', role: 'status'}, icon('completed'), h('span', {}, 'Submitted ', h('a', {class: 'mono', href: `#/tasks/${id}`}, id)),
        button('', {class: 'icon-button', 'aria-label': 'Dismiss', on: {click: () => note.remove()}}, icon('close')));
    if (this.notes?.isConnected) this.notes.append(note);
    else this.main.prepend(note);
    setTimeout(() => note.remove(), 15000);
  }

  /** A code in the address is taken out of it, and of the history, before it is sent. True: there was one. */
  takeLogin() {
    if (!location.hash.startsWith('#login=')) return false;
    const code = loginCode(location.hash);
    history.replaceState(null, '', '/');
    this.login(code);
    return true;
  }

  /** @param {string | null} code */
  async login(code) {
    this.loginError = '';
    try {
      if (code === null) throw new Error('This is no login link. Run duet-rpc dashboard once more.');
      const token = await signIn(code);
      this.app.route = {view: 'tasks', id: '', params: {}};
      this.app.start(token);
    } catch (error) {
      this.loginError = loginProblem(error);
      this.app.begin();  // whoever was signed in stays so, unless the daemon has ended that
    }
  }

  update() {
    const {app} = this;
    const isOut = document.documentElement.dataset.connection === 'signed-out';
    set(this.nav, {hidden: isOut});
    for (const [view, link] of this.links) {
      const isHere = app.route.view === view || (view === 'tasks' && app.route.view === 'task');
      set(link, {'aria-current': isHere && !isOut ? 'page' : null});
    }
    set(this.submit, {hidden: isOut || !app.may('task.submit')});
    set(this.out, {hidden: isOut || app.connection.token === byCertificate});
    set(this.reload, {hidden: !app.isOutdated});
    set(this.paused, {hidden: !app.state.queue?.paused});
    setText(this.project, app.session ? visibleLine(projectName(app.session.project)) : 'duet-rpc');
    set(this.project, {title: app.session ? visibleLine(app.session.project) : null});
    setText(this.who, app.session ? `${visibleLine(app.session.name)} · ${app.session.role}` : '');
    if (app.route.view === 'task' && !isOut) setText(this.title, visibleLine(app.route.id));
    this.#updateBadges();
    this.#updateTitle(isOut);
    this.tick();
  }

  #updateBadges() {
    const {state, approvals} = this.app;
    this.#badge('tasks', state.stats?.running ?? 0, 'running', '');
    this.#badge('rules', approvals.length, approvals.length === 1 ? 'approval waits' : 'approvals wait', 'is-strong');
    this.#badge('health', state.status?.problems?.length ?? 0, 'problems', 'is-bad');
  }

  /** @param {string} view @param {number} many @param {string} word @param {string} kind */
  #badge(view, many, word, kind) {
    const badge = /** @type {HTMLElement} */ (this.badges.get(view));
    set(badge, {hidden: many === 0, class: `badge ${kind}`, title: `${count(many)} ${word}`});
    const text = count(many);
    if (badge.dataset.text !== text) {
      badge.dataset.text = text;
      fill(badge, [text, h('span', {class: 'visually-hidden'}, ` ${word}`)]);
    }
  }

  /** @param {boolean} isOut */
  #updateTitle(isOut) {
    const {app} = this;
    const waiting = app.approvals.length;
    const here = isOut ? 'Sign in' : app.route.view === 'task' ? visibleLine(app.route.id) : titles[app.route.view];
    const title = `${waiting > 0 ? `(${waiting}) ` : ''}${here} · ${app.session ? visibleLine(projectName(app.session.project)) : 'duet-rpc'}`;
    if (document.title !== title) document.title = title;
  }

  /** What changes with time alone. */
  tick() {
    const connection = document.documentElement.dataset.connection;
    const {retryAt} = this.app;
    const wait = retryAt > Date.now() + 1000 ? ` ${relative(retryAt, Date.now())}` : '';
    const words = /** @type {Record<string, string>} */ ({live: 'Live', reconnecting: this.app.session ? `Connection lost, retrying${wait}` :
      'Connecting', 'signed-out': 'Signed out'});
    setText(/** @type {Element} */ (this.state.lastElementChild), words[connection ?? ''] ?? '');
    set(this.retry, {hidden: connection !== 'reconnecting' || wait === ''});
  }
}

/** @param {string} path */
function projectName(path) {
  return path.split('/').filter(Boolean).pop() ?? path;
}

export function brandMark() {
  const mark = h('span', {class: 'brand-mark', 'aria-hidden': 'true'});
  mark.append(h('i'), h('i'));
  return mark;
}

/** @param {unknown} error */
function loginProblem(error) {
  if (!(error instanceof Refused)) return error instanceof TypeError ? 'The daemon does not answer. Is it running?' : String(/** @type {Error} */ (error).message);
  if (error.word === 'used') return 'This link was used before, so the session that it had made was ended. Run duet-rpc dashboard once more.';
  if (error.word === 'code') return 'This link is not known or has expired. Links are good for 5 minutes: run duet-rpc dashboard once more.';
  if (error.status === 429) return 'Too many wrong links. Wait a minute.';
  return error.message;
}
