// Keeps the state true: asks for what events do not tell, no more often than it must.

import {pageSize} from './state.js';

/** @typedef {import('./app.js').App} App */

const fewTasks = 40;   // are asked for one by one
const pause = 250;     // between two portions of what events made stale
const statusEvery = 4; // seconds

export class Loader {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.timer = 0;
    this.isBusy = false;
    /** @type {Promise<void> | null} */
    this.page = null;
    this.generation = 0;
    this.ticks = 0;
  }

  /** After a connection was made. @param {boolean} isResumed the tasks are right, as events have told of them */
  reload(isResumed) {
    const {state} = this.app;
    for (const name of ['stats', 'automation', 'queue', 'status']) state.stale.add(name);
    if (!isResumed) {
      this.generation += 1;
      this.page = null;
      state.forgetTasks();
      this.more();
    }
    this.catchUp();
  }

  /** The next 1,000 older tasks. */
  more() {
    const {state, connection} = this.app;
    if (state.isComplete || !connection.isLive) return Promise.resolve();
    this.page ??= this.#loadPage(this.generation).catch(() => {}).finally(() => (this.page = null));
    return this.page;
  }

  /** @param {number} generation */
  async #loadPage(generation) {
    const {state} = this.app;
    const before = state.oldestId;
    const records = await this.app.call('task.list', before ? {limit: pageSize, before} : {limit: pageSize});
    if (generation !== this.generation) return;
    state.takePage(records, records.length < pageSize);
    this.app.changed();
  }

  /** Asks for what is stale; at once, and then in portions. */
  catchUp() {
    const {state} = this.app;
    if (this.timer !== 0 || this.isBusy || !this.app.isLive) return;
    if (state.stale.size === 0 && state.unknown.size === 0) return;
    this.isBusy = true;
    this.#ask().finally(() => {
      this.isBusy = false;
      this.app.changed();
      this.timer = window.setTimeout(() => {
        this.timer = 0;
        this.catchUp();
      }, pause);
    });
  }

  async #ask() {
    const {state} = this.app;
    const stale = [...state.stale];
    state.stale.clear();
    await Promise.allSettled([...stale.map((name) => this.#refresh(name)), this.#loadUnknown()]);
  }

  /** @param {string} name */
  async #refresh(name) {
    const {state} = this.app;
    const methods = /** @type {Record<string, string>} */ ({stats: 'task.stats', automation: 'automation.status',
      queue: 'queue.status', status: 'daemon.status'});
    const method = /** @type {string} */ (methods[name]);
    if (!this.app.may(method)) return;
    /** @type {any} */ (state)[name] = await this.app.call(method);
  }

  async #loadUnknown() {
    const {state} = this.app;
    const ids = [...state.unknown];
    if (ids.length === 0) return;
    if (ids.length > fewTasks) return this.#loadNewest(ids);
    await Promise.all(this.app.connection.batch(ids.map((taskId) => ({method: 'task.get', params: {taskId}})))
        .map((answer, i) => answer.then((record) => state.takeTask(record), (error) => {
          if (error.code === -32000) state.forgetTask(/** @type {string} */ (ids[i]));
        })));
  }

  // Many at once are the newest as a rule; what is left is asked for in the next portion.
  /** @param {string[]} ids */
  async #loadNewest(ids) {
    const {state} = this.app;
    const records = await this.app.call('task.list', {limit: Math.min(pageSize, ids.length + 20)});
    for (const record of records) state.takeTask(record);
    for (const id of ids.slice(0, fewTasks)) {
      if (!state.unknown.has(id)) continue;
      await this.app.call('task.get', {taskId: id}).then((record) => state.takeTask(record), () => state.forgetTask(id));
    }
  }

  /** Called every second: what has no events of its own. */
  poll() {
    this.ticks += 1;
    const every = this.app.route.view === 'health' ? 1 : statusEvery;
    if (this.ticks % every === 0) this.app.state.stale.add('status');
    this.catchUp();
  }
}
