// Puts events into the order of their numbers, each once, whatever the order in which a connection delivers them.
//
// A new connection gets what happens at once, and what happened before it only when it asks: those that come too early
// wait here. Pure.

/** `at` is when it came to us, in milliseconds, NaN if that says nothing; `isHistory` says that what it tells was known already.
 *  @typedef {{seq: number | null, kind: string, params: Record<string, any>, at: number, isHistory: boolean}} DaemonEvent */
/** Numbers that will not come any more, the last included. @typedef {{from: number, to: number, isOurs?: boolean}} Gap */

const mostWaiting = 20000;

export class EventCursor {
  constructor() {
    this.next = 0;  // 0: nobody knows yet
    /** @type {Map<number, DaemonEvent>} */
    this.waiting = new Map();
  }

  /** The next one that is wanted has this number; what waits goes on from there. @param {number} next @returns {DaemonEvent[]} */
  begin(next) {
    for (const seq of this.waiting.keys()) {
      if (seq < next) this.waiting.delete(seq);
    }
    this.next = next;
    return this.#ready();
  }

  /** Nothing of what came before counts: the numbers begin anew. */
  forget() {
    this.next = 0;
    this.waiting.clear();
  }

  /** The events that are next, in order, now that this one is here. @param {DaemonEvent} event @returns {DaemonEvent[]} */
  take(event) {
    if (event.seq === null) return [event];
    if (this.next !== 0 && event.seq < this.next) return [];
    if (this.waiting.size < mostWaiting) this.waiting.set(event.seq, event);
    return this.next === 0 ? [] : this.#ready();
  }

  get isStuck() {
    return this.next !== 0 && this.waiting.size > 0;
  }

  /** Gives up what lacks and goes on with what waits. @returns {Gap | null} */
  skip() {
    if (!this.isStuck) return null;
    const first = Math.min(...this.waiting.keys());
    const gap = {from: this.next, to: first - 1};
    this.next = first;
    return gap;
  }

  /** What has become next by `skip`. @returns {DaemonEvent[]} */
  drain() {
    return this.#ready();
  }

  #ready() {
    /** @type {DaemonEvent[]} */
    const ready = [];
    for (let event = this.waiting.get(this.next); event; event = this.waiting.get(this.next)) {
      this.waiting.delete(this.next);
      this.next += 1;
      ready.push(event);
    }
    return ready;
  }
}
