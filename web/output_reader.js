// Fetches a task's output by offset: the end first, more as it is written, earlier parts when somebody scrolls up.
// What events carry is not shown but read again: so there is one source, and nothing is missing or twice.

import {OutputText, bytesOf, partOfLine} from './output_text.js';

/** @typedef {{offset: number, bytes: Uint8Array, next: number, done: boolean, dropped: number}} Piece */
/** @typedef {(method: string, params: object) => Promise<any>} Call */

const portion = 1024 * 1024;
const largest = 4 * 1024 * 1024;
const theEnd = Number.MAX_SAFE_INTEGER;

/** @param {Call} call @param {string} taskId @param {number} offset @param {number} limit @returns {Promise<Piece>} */
async function read(call, taskId, offset, limit) {
  const {data, dropped = 0, ...rest} = await call('task.output', {taskId, offset, limit, encoding: 'base64'});
  return {...rest, dropped, bytes: bytesOf(data)};
}

/** All of it, as `duet-rpc task output` prints it. @param {Call} call @param {string} taskId
 *  @param {(bytes: number) => void} progress */
export async function wholeOutput(call, taskId, progress) {
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const parts = [];
  let offset = 0;
  let last = 10;
  for (;;) {
    const piece = await read(call, taskId, offset, largest);
    if (piece.offset > offset) {
      const note = `${last === 10 ? '' : '\n'}[${piece.offset - offset} bytes dropped]\n`;
      parts.push(new TextEncoder().encode(note));
      last = 10;
    }
    if (piece.bytes.length > 0) last = /** @type {number} */ (piece.bytes[piece.bytes.length - 1]);
    parts.push(/** @type {Uint8Array<ArrayBuffer>} */ (piece.bytes));
    if (piece.done || piece.next === offset) return parts;
    offset = piece.next;
    progress(offset);
  }
}

export class OutputReader {
  /** @param {Call} call @param {string} taskId */
  constructor(call, taskId) {
    this.call = call;
    this.taskId = taskId;
    this.text = new OutputText();
    this.isDone = false;
    this.isAtEnd = false;  // what is here reaches to the end of what was written
    this.isOpen = false;
    this.total = 0;  // bytes that were written, as far as is known
    /** @type {Promise<any>} one thing after another */
    this.turn = Promise.resolve();
  }

  /** @param {number} offset @param {number} limit */
  async #read(offset, limit) {
    const piece = await read(this.call, this.taskId, offset, limit);
    this.total = Math.max(this.total, piece.next);
    return piece;
  }

  /** @template T @param {() => Promise<T>} work @returns {Promise<T>} */
  #inTurn(work) {
    const result = this.turn.then(work, work);
    this.turn = result.catch(() => {});
    return result;
  }

  /** The last MiB. */
  openTail() {
    return this.#inTurn(async () => {
      const end = (await this.#read(theEnd, 1)).next;
      let start = Math.max(0, end - portion);
      if (start > 0) {
        const piece = await this.#read(start, portion);
        const cut = piece.offset > start ? 0 : partOfLine(piece.bytes);
        start = piece.offset + cut;
        this.text.reset(start);
        this.text.append(piece.bytes.subarray(cut), start);
      } else {
        this.text.reset(0);
      }
      this.isOpen = true;
      this.isAtEnd = true;
      await this.#append();
    });
  }

  /** A portion of what was written since. Answers what came: nothing, the rest, or a part of it. */
  more() {
    return this.#inTurn(() => (this.isAtEnd ? this.#append() : Promise.resolve(/** @type {const} */ ('nothing'))));
  }

  /** How many bytes behind what is here were written, as of now. */
  async behind() {
    return (await this.#read(theEnd, 1)).next - this.text.end;
  }

  /** @returns {Promise<'nothing' | 'rest' | 'part'>} */
  async #append() {
    const piece = await this.#read(this.text.end, portion);
    this.isDone = piece.done;
    if (piece.bytes.length === 0 && piece.offset <= this.text.end) {
      if (piece.done) this.text.finish();
      return 'nothing';
    }
    this.text.append(piece.bytes, piece.offset);
    return piece.done || piece.bytes.length < portion / 2 ? 'rest' : 'part';
  }

  /** A portion from behind what is here, after the end was let go. */
  later() {
    return this.#inTurn(async () => {
      const piece = await this.#read(this.text.end, portion);
      if (piece.bytes.length === 0) this.isAtEnd = true;
      else this.text.append(piece.bytes, piece.offset);
    });
  }

  /** A portion from before what is here. Answers how many lines there are more at the top. */
  earlier() {
    return this.#inTurn(async () => {
      const {start} = this.text;
      if (start <= 0) return 0;
      const before = this.text.end;
      const found = await this.#before(start);
      if (!found) return 0;
      const added = this.text.prepend(found.bytes, found.offset, found.gap);
      if (this.text.end < before) this.isAtEnd = false;
      return added;
    });
  }

  // The bytes right before this offset; if these were dropped, those before the gap.
  /** @param {number} end */
  async #before(end) {
    let limit = end;
    let gap = 0;
    for (let tries = 0; tries < 3; ++tries) {
      const from = Math.max(0, limit - portion);
      const piece = await this.#read(from, limit - from);
      const isInGap = piece.offset >= limit;
      const endsEarly = !isInGap && piece.offset + piece.bytes.length < limit;
      if (isInGap || (endsEarly && piece.bytes.length === 0)) {
        gap += piece.dropped;
        limit = piece.offset - piece.dropped;
        if (limit <= 0) return {bytes: new Uint8Array(), offset: 0, gap};
      } else if (endsEarly) {  // a gap begins inside: its front is what is wanted then
        const behind = await this.#read(piece.next, 1);
        gap = behind.offset - piece.next;
        return this.#cut(piece, from, gap);
      } else {
        return this.#cut(piece, from, gap);
      }
    }
    return null;
  }

  /** @param {Piece} piece @param {number} from @param {number} gap */
  #cut(piece, from, gap) {
    const cut = from > 0 && piece.offset === from ? partOfLine(piece.bytes) : 0;
    const isWhole = cut >= piece.bytes.length;  // one line that is longer than a portion
    return {bytes: isWhole ? piece.bytes : piece.bytes.subarray(cut), offset: piece.offset + (isWhole ? 0 : cut), gap};
  }
}
