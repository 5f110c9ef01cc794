// The page put together: one connection, one state, one view at a time.

import {Connection} from './connection.js';
import {Announcer} from './feedback.js';
import {Loader} from './loader.js';
import {notifyOnce} from './notifications.js';
import {mayCall} from './roles.js';
import {formatRoute, parseRoute} from './router.js';
import {byCertificate, forgetToken, onTokenChange, probe, signOut, storedToken} from './session.js';
import {Shell} from './shell.js';
import {State, approvalsOf} from './state.js';
import {forgetDraft} from './submit_dialog.js';
import {refreshTimes} from './dom.js';
import {firstLine, visibleLine} from './text.js';
import {viewFactories} from './views/all.js';
import {signInView} from './views/sign_in.js';

/** `update` is called when something has changed, `heard` before that with each event, `route` when the address of the
 *  same view has changed, `tick` every second.
 *  @typedef {{update?: () => void, heard?: (event: import('./event_cursor.js').DaemonEvent) => void, route?: (route: import('./router.js').Route) => void, tick?: () => void,
 *    keys?: Record<string, () => void>, output?: (params: any) => void, destroy?: () => void}} View */
/** @typedef {(app: App, main: HTMLElement, route: import('./router.js').Route) => View} ViewFactory */

const restTime = 100;  // milliseconds between two renderings of what events changed

export class App {
  constructor() {
    this.state = new State();
    this.connection = new Connection();
    this.announcer = new Announcer();
    /** @type {any} what `session.info` says */
    this.session = null;
    this.route = parseRoute(location.hash);
    /** @type {View | null} */
    this.view = null;
    this.viewName = '';
    this.isDirty = false;
    this.renderedAt = 0;
    /** @type {string | undefined} what the page was made of when it was loaded */
    this.loadedAssets = undefined;
    this.retryAt = 0;
    this.loader = new Loader(this);
    this.shell = new Shell(this);
    this.#listen();
  }

  #listen() {
    const {connection} = this;
    connection.onState = (state, retryAt) => this.#connectionChanged(state, retryAt);
    connection.onSession = (session) => this.#signedIn(session);
    connection.onEvents = (events) => this.#heard(events);
    connection.onGap = (gap) => {
      this.state.applyGap(gap);
      this.changed();
    };
    connection.onForget = () => this.state.clear();
    connection.onReset = (isResumed) => this.loader.reload(isResumed);
    connection.onOutput = (params) => this.view?.output?.(params);
    addEventListener('hashchange', () => this.#routeChanged());
    document.addEventListener('visibilitychange', () => {
      // What waits for a frame would wait until the tab is seen again.
      if (document.hidden) return void (this.isDirty && setTimeout(() => this.#render(), 0));
      connection.retryNow();
      this.changed();
    });
    onTokenChange((token) => this.connection.token !== byCertificate && this.start(token));
    setInterval(() => this.#tick(), 1000);
  }

  /** With what this browser has to show. */
  async begin() {
    const token = storedToken();
    if (token && token === this.connection.token) return this.#routeChanged();
    if (token || location.protocol !== 'https:') return this.start(token);
    const found = await probe(byCertificate);
    if (found === 'refused') this.shell.loginError = 'This certificate may do nothing here: it has no role. cert client --role makes another one.';
    this.start(found === 'good' ? byCertificate : null);
  }

  /** @param {string | null} token */
  start(token) {
    if (token === null) return this.signedOut();
    this.state.clear();
    this.connection.start(token);
    this.#showView();
  }

  /** Back to the beginning, with nothing of what was seen left on the screen. */
  signedOut() {
    this.connection.stop();
    this.state.clear();
    this.session = null;
    delete document.documentElement.dataset.role;
    this.#connectionChanged('signed-out', 0);
  }

  async signOut() {
    const token = storedToken();
    this.signedOut();
    forgetDraft();
    if (token === null) return;
    await signOut(token).catch(() => {
      this.shell.loginError = 'You are signed out here, but the daemon did not hear of it. To end the session there, too: duet-rpc token list, token revoke.';
      this.changed();
    });
  }

  /** @param {string} method */
  may(method) {
    return this.session !== null && mayCall(this.session.role, method);
  }

  get isLive() {
    return this.connection.isLive;
  }

  /** @param {string} method @param {object} [params] */
  call(method, params) {
    return this.connection.call(method, params);
  }

  /** Something is to be shown; when there is time. */
  changed() {
    if (this.isDirty) return;
    this.isDirty = true;
    // Without a frame in sight (a hidden tab), the title still has to be right.
    if (document.hidden) return void setTimeout(() => this.#render(), 250);
    // However much happens, there is time left for clicks.
    const wait = this.renderedAt + restTime - performance.now();
    if (wait > 0) setTimeout(() => requestAnimationFrame(() => this.#render()), wait);
    else requestAnimationFrame(() => this.#render());
  }

  #render() {
    if (!this.isDirty) return;
    this.isDirty = false;
    this.shell.update();
    if (!document.hidden) this.view?.update?.();
    this.renderedAt = performance.now();
  }

  /** Another view, or the same with other filters. @param {string} view @param {Record<string, string | undefined>} [params]
   *  @param {{id?: string, replace?: boolean}} [options] */
  go(view, params = {}, {id = '', replace = false} = {}) {
    const hash = formatRoute(view, params, id);
    if (!replace) {
      location.hash = hash;
      return;
    }
    history.replaceState(null, '', hash);
    this.route = parseRoute(hash);
    this.view?.route?.(this.route);
    this.shell.update();
  }

  #routeChanged() {
    if (location.hash.startsWith('#login=')) return this.shell.takeLogin();
    this.route = parseRoute(location.hash);
    this.#showView();
  }

  #showView() {
    const isOut = document.documentElement.dataset.connection === 'signed-out';
    const name = isOut ? 'sign-in' : this.route.view === 'task' ? `task ${this.route.id}` : this.route.view;
    if (name === this.viewName && this.view) {
      this.view.route?.(this.route);
      return this.shell.update();
    }
    this.view?.destroy?.();
    this.viewName = name;
    const main = this.shell.freshMain(isOut ? 'sign-in' : this.route.view);
    this.view = isOut ? signInView(this, main, this.route) : /** @type {ViewFactory} */ (viewFactories[this.route.view])(this, main, this.route);
    this.shell.update();
    this.view.update?.();
  }

  /** @param {'live' | 'reconnecting' | 'signed-out'} state @param {number} retryAt */
  #connectionChanged(state, retryAt) {
    const root = document.documentElement;
    const before = root.dataset.connection;
    root.dataset.connection = state;
    this.retryAt = retryAt;
    if (state === 'signed-out') {
      forgetToken();
      document.querySelectorAll('dialog').forEach((dialog) => dialog.remove());
    }
    if ((before === 'signed-out') !== (state === 'signed-out') || !this.view) this.#showView();
    if (before === 'live' && state === 'reconnecting') this.announcer.say('Connection lost, trying again');
    if (before === 'reconnecting' && state === 'live') this.announcer.say('Connected');
    this.changed();
  }

  /** @param {any} session */
  #signedIn(session) {
    const isOther = this.session?.role !== session.role;
    this.loadedAssets ??= session.assets;
    this.session = session;
    this.shell.loginError = '';
    document.documentElement.dataset.role = session.role;
    if (isOther) {  // views offer what the role may do
      this.viewName = '';
      this.#showView();
    }
    this.changed();
  }

  /** The program was replaced by another one since this page was loaded. */
  get isOutdated() {
    return this.session !== null && this.session.assets !== this.loadedAssets;
  }

  /** @param {import('./event_cursor.js').DaemonEvent[]} events */
  #heard(events) {
    for (const event of events) {
      this.state.apply(event);
      this.view?.heard?.(event);
      if (!event.isHistory) this.#tell(event);
    }
    this.loader.catchUp();
    this.changed();
  }

  /** @param {import('./event_cursor.js').DaemonEvent} event */
  #tell({kind, params}) {
    const what = kind === 'taskFailed' ? 'failed' : kind === 'taskCompleted' ? 'completed' : 'cancelled';
    if (['taskFailed', 'taskCompleted', 'taskCancelled'].includes(kind)) this.announcer.say(`${params.taskId} ${what}`);
    if (kind === 'taskFailed') {
      const task = this.state.tasks.get(params.taskId);
      const body = `${visibleLine(params.error?.message ?? '')}\n${task ? firstLine(task.prompt, 100) : ''}`.trim();
      notifyOnce(`${params.taskId}.${params.attempts}.${params.completedAt}`, `${params.taskId} failed`, body, `#/tasks/${params.taskId}`);
    }
    if (kind === 'approvalNeeded') {
      const what = `${visibleLine(params.ruleId)} needs an approval`;
      this.announcer.say(what);
      notifyOnce(`approval-${params.firingId}`, what, '', '#/rules');
    }
  }

  get approvals() {
    return approvalsOf(this.state.automation);
  }

  #tick() {
    if (document.hidden) return;
    refreshTimes(document);
    this.shell.tick();
    this.view?.tick?.();
    this.loader.poll();
  }
}
