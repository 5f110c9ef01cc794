// The one WebSocket of this page: calls, events in their order, and a new connection whenever the old one is lost.
//
// What the daemon tells is handed to `on…` callbacks, which the owner sets. After a loss it goes on behind the last event
// that was heard; if that cannot be, `onReset` says that everything has to be asked for again.

import {daemonNow, setDaemonClock} from './daemon_clock.js';
import {EventCursor} from './event_cursor.js';
import {byCertificate, probe} from './session.js';
import {eventKinds} from './state.js';

/** @typedef {import('./event_cursor.js').DaemonEvent} DaemonEvent */

const firstDelay = 500;
const longestDelay = 10000;
const silence = 25000;  // after which we ask whether anybody is there
const answerTime = 10000;
const patience = 3000;  // with a number that does not come
const historyLength = 500;
const longestMessage = 10 * 1024 * 1024;  // bytes; the daemon takes no more

export class RpcError extends Error {
  /** @param {{code: number, message: string, data?: any}} error */
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }
}

export class TooLong extends Error {
  constructor() {
    super('This is too long: the daemon takes messages of up to 10 MiB.');
  }
}

export class Disconnected extends Error {
  constructor() {
    super('The connection to the daemon was lost.');
  }
}

/** The wait before an attempt. @param {number} failures in a row @param {number} chance from 0 to 1 */
export function retryDelay(failures, chance) {
  return Math.min(longestDelay, firstDelay * 2 ** Math.min(failures, 10)) * (0.75 + chance / 2);
}

export class Connection {
  /** @type {(state: 'live' | 'reconnecting' | 'signed-out', retryAt: number) => void} */
  onState = () => {};
  /** @type {(events: DaemonEvent[]) => void} */
  onEvents = () => {};
  /** @type {(gap: import('./event_cursor.js').Gap) => void} */
  onGap = () => {};
  /** Everything that was known may be wrong; or, with `isResumed`, what no event tells of.
   *  @type {(isResumed: boolean) => void} */
  onReset = () => {};
  /** The numbers of events begin anew: the store is another one. */
  onForget = () => {};
  /** @type {(info: any) => void} */
  onSession = () => {};
  /** @type {(params: any) => void} */
  onOutput = () => {};

  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {string | null} what says who we are; null: nothing does, and nothing is to happen */
  token = null;
  #isLive = false;
  #failures = 0;
  #retryTimer = 0;
  #watchTimer = 0;
  #stuckTimer = 0;
  #nextId = 1;
  #heardAt = 0;
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #calls = new Map();
  #cursor = new EventCursor();
  #epoch = '';
  #replayEnd = 0;   // events before this number happened at a time that is not known
  #historyEnd = 0;  // events before this number tell of what the first answers held already
  #kinds = eventKinds;
  /** @type {string[]} */
  #outputOf = [];
  #askedOutputOf = this.#outputOf;

  get isLive() {
    return this.#isLive;
  }

  /** @param {string} token */
  start(token) {
    this.stop();
    this.token = token;
    this.#failures = 0;
    this.onState('reconnecting', 0);
    this.#open();
  }

  /** Signed out: nothing more happens until the next start. */
  stop() {
    this.token = null;
    clearTimeout(this.#retryTimer);
    this.#drop();
    this.#cursor.forget();
    this.#epoch = '';
  }

  /** Now rather than when it is time. */
  retryNow() {
    if (this.token === null || this.#socket) return;
    clearTimeout(this.#retryTimer);
    this.#open();
  }

  /** Output of these tasks comes along. @param {string[]} ids */
  followOutput(ids) {
    this.#outputOf = ids;
    if (this.#isLive) this.#send('events.subscribe', {kinds: this.#kinds, outputOf: ids}).catch(() => {});
  }

  /** @param {string} method @param {object} [params] @returns {Promise<any>} */
  call(method, params = {}) {
    return this.#isLive ? this.#send(method, params) : Promise.reject(new Disconnected());
  }

  /** Several calls in one message; each has its own answer. @param {{method: string, params: object}[]} calls */
  batch(calls) {
    const socket = this.#socket;
    if (!this.#isLive || !socket) return calls.map(() => Promise.reject(new Disconnected()));
    const messages = calls.map((call) => ({jsonrpc: '2.0', id: this.#nextId++, ...call}));
    const answers = messages.map(({id}) => this.#answer(id));
    socket.send(JSON.stringify(messages));
    return answers;
  }

  /** @param {string} method @param {object} params @returns {Promise<any>} */
  #send(method, params) {
    const id = this.#nextId++;
    const text = JSON.stringify({jsonrpc: '2.0', id, method, params});
    // The answer would have no id, so nobody would get it.
    if (text.length > longestMessage / 3 && new TextEncoder().encode(text).length > longestMessage) return Promise.reject(new TooLong());
    const answer = this.#answer(id);
    this.#socket?.send(text);
    return answer;
  }

  /** @param {number} id @returns {Promise<any>} */
  #answer(id) {
    return new Promise((resolve, reject) => this.#calls.set(id, {resolve, reject}));
  }

  #open() {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const shown = this.token === byCertificate ? [] : [`duet-rpc.token.${this.token}`];
    const socket = new WebSocket(`${scheme}://${location.host}/ws`, ['duet-rpc.1', ...shown]);
    this.#socket = socket;
    socket.onopen = () => this.#greet(socket);
    socket.onmessage = (message) => this.#take(message.data);
    socket.onclose = (event) => {
      if (this.#socket === socket) this.#lost(event.code);
    };
  }

  /** @param {WebSocket} socket */
  async #greet(socket) {
    this.#heardAt = Date.now();
    try {
      const asked = Date.now();
      const [session, isResumed] = await Promise.all([this.#send('session.info', {}), this.#subscribe(),
        this.#send('ping', {}).then(({timestamp}) => setDaemonClock(Date.parse(timestamp), asked, Date.now()))]);
      if (this.#socket !== socket) return;
      this.#failures = 0;
      this.#isLive = true;
      this.#watch();
      this.onSession(session);
      this.onState('live', 0);
      this.onReset(isResumed);
      if (this.#outputOf !== this.#askedOutputOf) this.followOutput(this.#outputOf);
    } catch {
      if (this.#socket === socket) socket.close();
    }
  }

  // True: it goes on where it was.
  async #subscribe() {
    this.#askedOutputOf = this.#outputOf;
    try {
      return await this.#subscribeTo({kinds: this.#kinds, outputOf: this.#outputOf});
    } catch (error) {
      // A daemon of another version than this page names the kinds that it has.
      const accepted = error instanceof RpcError ? error.data?.accepted : null;
      if (!Array.isArray(accepted)) throw error;
      this.#kinds = accepted.filter((kind) => kind !== 'taskOutput');
      return this.#subscribeTo({kinds: this.#kinds, outputOf: this.#outputOf});
    }
  }

  /** @param {object} filter */
  async #subscribeTo(filter) {
    const isFirst = this.#epoch === '';
    if (isFirst) {
      const {epoch, next} = await this.#send('events.subscribe', filter);
      this.#epoch = epoch;
      this.#historyEnd = next;
      await this.#replay({...filter, since: Math.max(1, next - historyLength)}, true);
      return false;
    }
    return this.#replay({...filter, since: Math.max(1, this.#cursor.next)}, false);
  }

  // True: nothing was missed.
  /** @param {{since: number}} wish @param {boolean} isFirst */
  async #replay(wish, isFirst) {
    const wanted = wish.since;
    const {epoch, next, missed, oldest} = await this.#send('events.subscribe', wish);
    const isSame = epoch === this.#epoch;
    const from = missed ? Math.min(Math.max(wanted, oldest), next) : wanted;
    if (!isSame || (missed && !isFirst)) this.#historyEnd = next;
    if (isSame && !isFirst && from > wanted) this.onGap({from: wanted, to: from - 1});
    if (!isSame) this.onForget();
    this.#epoch = epoch;
    this.#replayEnd = next;
    this.#hand(this.#cursor.begin(from));
    return isSame && !missed;
  }

  /** @param {number} code */
  async #lost(code) {
    const {token} = this;
    this.#drop();
    if (token === null) return;
    if (code === 1008) return this.#ended();
    const wait = retryDelay(this.#failures++, Math.random());
    this.onState('reconnecting', Date.now() + wait);
    this.#retryTimer = window.setTimeout(async () => {
      const found = this.#failures > 1 ? await probe(token) : 'good';
      if (this.token !== token || this.#socket) return;
      if (found === 'ended') this.#ended();
      else if (found === 'good') this.#open();
      else this.#lost(0);
    }, wait);
  }

  #ended() {
    this.stop();
    this.onState('signed-out', 0);
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    this.#isLive = false;
    clearTimeout(this.#watchTimer);
    clearTimeout(this.#stuckTimer);
    for (const {reject} of this.#calls.values()) reject(new Disconnected());
    this.#calls.clear();
    this.#cursor.waiting.clear();
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  // A daemon that was stopped, or a machine that slept, closes nothing.
  #watch() {
    clearTimeout(this.#watchTimer);
    this.#watchTimer = window.setTimeout(async () => {
      if (Date.now() - this.#heardAt >= silence) {
        const socket = this.#socket;
        const late = window.setTimeout(() => this.#socket === socket && this.#lost(0), answerTime);
        await this.#send('ping', {}).catch(() => {});
        clearTimeout(late);
      }
      if (this.#isLive) this.#watch();
    }, silence);
  }

  /** @param {string} text */
  #take(text) {
    this.#heardAt = Date.now();
    const told = JSON.parse(text);
    for (const message of Array.isArray(told) ? told : [told]) this.#takeMessage(message);
  }

  /** @param {any} message */
  #takeMessage(message) {
    if (typeof message.method === 'string') return this.#takeEvent(message.method.replace(/^event\./, ''), message.params ?? {});
    const call = this.#calls.get(message.id);
    this.#calls.delete(message.id);
    if (message.error) call?.reject(new RpcError(message.error));
    else call?.resolve(message.result);
  }

  /** @param {string} kind @param {Record<string, any>} params */
  #takeEvent(kind, params) {
    if (kind === 'taskOutput') return this.onOutput(params);
    if (kind === 'overflow') return void this.#subscribeAgain();
    const seq = typeof params.seq === 'number' ? params.seq : null;
    const isHistory = seq !== null && seq < this.#historyEnd;
    this.#hand(this.#cursor.take({seq, kind, params, at: seq !== null && seq < this.#replayEnd ? NaN : daemonNow(), isHistory}));
  }

  async #subscribeAgain() {
    const socket = this.#socket;
    try {
      this.onReset(await this.#subscribe());
    } catch {
      if (socket && this.#socket === socket) this.#lost(0);  // else it would seem live, and hear nothing
    }
  }

  /** @param {DaemonEvent[]} events */
  #hand(events) {
    if (events.length > 0) this.onEvents(events);
    clearTimeout(this.#stuckTimer);
    if (!this.#cursor.isStuck) return;
    this.#stuckTimer = window.setTimeout(() => {
      const gap = this.#cursor.skip();
      if (gap) this.onGap(gap);
      this.#hand(this.#cursor.drain());
    }, patience);
  }
}
