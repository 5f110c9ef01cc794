// The part of a task's output that the page holds: at most 8 MiB of text, always one piece of the whole, as lines.
//
// Bytes come by their offsets and may be put behind what is there or before it. What is too much goes from the other
// end. Pure.

import {AnsiLines} from './ansi.js';

export const mostText = 8 * 1024 * 1024;
const blockSize = 512 * 1024;
const lineCost = 48;  // what a line takes beside its text

/** `gap` is the number of bytes before it that were not kept. `lines` were finished before it began; if it `isClean`,
 *  nothing else was under way then.
 *  @typedef {{offset: number, end: number, text: string, gap: number, lines: number, isClean: boolean}} Block */

const decoder = new TextDecoder('utf-8', {ignoreBOM: true});
const decode = (/** @type {Uint8Array} */ bytes) => decoder.decode(bytes);

/** How many bytes at the end are a character whose rest may still come. @param {Uint8Array} bytes */
function unfinished(bytes) {
  for (let back = 1; back <= 3 && back <= bytes.length; ++back) {
    const byte = /** @type {number} */ (bytes[bytes.length - back]);
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) > back ? back : 0;
  }
  return 0;
}

export class OutputText {
  model = new AnsiLines();
  rest = new Uint8Array();  // the beginning of a character whose end has not come yet
  /** @type {Block[]} */
  blocks = [];
  start = 0;
  end = 0;
  above = 0;  // lines that were let go at the top
  knowsNumbers = true;  // lines are counted from the very first

  constructor(most = mostText) {
    this.most = most;
  }

  /** Nothing is here; what is appended next begins at this offset. @param {number} offset */
  reset(offset) {
    this.model = new AnsiLines();
    this.rest = new Uint8Array();
    this.blocks = [];
    this.start = this.end = offset;
    this.above = 0;
    this.knowsNumbers = offset === 0;
  }

  get lines() {
    return this.model.lines;
  }

  get size() {
    return this.blocks.reduce((sum, block) => sum + block.text.length, 0) + lineCost * this.lines.length;
  }

  /** @param {Uint8Array} bytes @param {number} offset where they begin; behind the end, what is between was dropped */
  append(bytes, offset) {
    const gap = offset - this.end;
    if (gap > 0) {
      this.finish();
      this.model.writeDropped(gap);
    }
    const joined = new Uint8Array(this.rest.length + bytes.length);
    joined.set(this.rest);
    joined.set(bytes, this.rest.length);
    const whole = joined.length - unfinished(joined);
    this.rest = joined.slice(whole);
    this.end = offset + bytes.length;
    this.#push(decode(joined.subarray(0, whole)), this.end - this.rest.length, Math.max(0, gap));
    while (this.size > this.most && this.blocks.length > 1) this.#dropFirst();
  }

  /** What the last character lacks does not come any more. */
  finish() {
    if (this.rest.length > 0) this.#push(decode(this.rest), this.end, 0);
    this.rest = new Uint8Array();
  }

  /** Bytes that end where this begins; or, after a gap, `gap` bytes before. Returns how many lines there are more at the top.
   *  @param {Uint8Array} bytes @param {number} offset @param {number} [gap] */
  prepend(bytes, offset, gap = 0) {
    const text = decode(bytes);
    const before = this.lines.length;
    const earlier = new AnsiLines();
    earlier.write(text);
    const isJoined = gap === 0 && earlier.isClean;
    const first = this.blocks[0];
    if (first) [first.gap, first.isClean] = [gap, isJoined];
    this.blocks.unshift({offset, end: offset + bytes.length, text, gap: 0, lines: 0, isClean: true});
    if (isJoined) this.#putBefore(earlier);
    else this.#readAgain();
    const added = this.lines.length - before;
    this.start = offset;
    this.above = 0;
    this.knowsNumbers = offset === 0;
    this.#cutEnd();
    return added;
  }

  // What is too much at the end goes.
  #cutEnd() {
    let cut = null;
    while (this.size > this.most && this.blocks.length > 1) {
      cut = /** @type {Block} */ (this.blocks.pop());
      if (cut.isClean && cut.gap === 0) this.#endBefore(cut);
      else this.#readAgain();
    }
    if (!cut) return;
    this.rest = new Uint8Array();
    this.end = /** @type {Block} */ (this.blocks[this.blocks.length - 1]).end;
  }

  /** @param {Block} block */
  #endBefore(block) {
    const lines = this.lines.slice(0, block.lines);
    this.model = new AnsiLines();
    this.model.lines = lines.concat(this.model.lines);
  }

  /** The number of the line with this index, counted from 1. @param {number} index */
  number(index) {
    return this.above + index + 1;
  }

  /** @param {AnsiLines} earlier */
  #putBefore(earlier) {
    const added = earlier.lines.length - 1;  // its last line is empty, and goes on as our first
    this.model.lines = earlier.lines.slice(0, added).concat(this.model.lines);
    for (const block of this.blocks.slice(1)) block.lines += added;
  }

  #readAgain() {
    this.model = new AnsiLines();
    for (const block of this.blocks) {
      if (block.gap > 0) this.model.writeDropped(block.gap);
      block.lines = this.model.lines.length - 1;
      block.isClean = this.model.isClean;
      this.model.write(block.text);
    }
  }

  /** @param {string} text @param {number} end @param {number} gap */
  #push(text, end, gap) {
    const last = this.blocks[this.blocks.length - 1];
    const lines = this.model.lines.length - 1;
    const isClean = this.model.isClean;
    this.model.write(text);
    if (last && gap === 0 && last.text.length + text.length <= blockSize) {
      last.text += text;
      last.end = end;
    } else if (text !== '' || gap > 0) {
      this.blocks.push({offset: last ? last.end + gap : this.start, end, text, gap, lines, isClean});
    }
  }

  #dropFirst() {
    this.blocks.shift();
    const first = /** @type {Block} */ (this.blocks[0]);
    const gone = first.lines;
    this.model.lines.splice(0, gone);
    for (const block of this.blocks) block.lines -= gone;
    this.above += gone;
    this.start = first.offset;
    // A line that began long before is read anew from here, or it would be kept whole.
    if (/** @type {{text: string}} */ (this.lines[0]).text.length > this.most / 2) this.#readAgain();
  }
}

/** How many bytes of a line that began earlier stand at the front; all of them if no line ends here.
 *  @param {Uint8Array} bytes */
export function partOfLine(bytes) {
  const end = bytes.indexOf(10);
  if (end >= 0) return end + 1;
  let at = 0;
  while (at < 3 && at < bytes.length && (/** @type {number} */ (bytes[at]) & 0xc0) === 0x80) at += 1;
  return at;
}

/** Exactly the bytes. @param {string} text in base64 */
export function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The columns that a character takes. @param {number} code */
function isWide(code) {
  return code >= 0x1100 && (code <= 0x115f || (code >= 0x2e80 && code <= 0xa4cf) || (code >= 0xac00 && code <= 0xd7a3) ||
      (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
      (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd));
}

const narrow = /^[\0-\u10ff]*$/;

/** Where the rows of a line begin that has room for so many columns. @param {string} text @param {number} columns */
export function rowStarts(text, columns) {
  const starts = [0];
  if (text.length * 2 <= columns) return starts;
  if (narrow.test(text)) {
    for (let at = columns; at < text.length; at += columns) starts.push(at);
    return starts;
  }
  let used = 0;
  let at = 0;
  for (const character of text) {
    const width = isWide(/** @type {number} */ (character.codePointAt(0))) ? 2 : 1;
    if (used + width > columns) {
      starts.push(at);
      used = 0;
    }
    used += width;
    at += character.length;
  }
  return starts;
}
