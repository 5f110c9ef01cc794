// What a program wrote, as lines with colours: the part of a terminal that output on paper can have.
//
// Understood are colours (16, 256, true), bold, dim, italic, underline, inverse, strike, \r, \b, \t and erase-line. Every
// other control sequence vanishes whole, also when it comes in pieces; other control characters are made visible. A cell
// is one code point. The cursor stays on its line: what moves it up or down is not followed. Pure.

import {invisible, picture} from './text.js';

export const bold = 1;
export const dim = 2;
export const italic = 4;
export const underline = 8;
export const inverse = 16;
export const strike = 32;

/** A colour is null (none), 0 to 255 (the palette), or trueColour + 0xRRGGBB. */
export const trueColour = 0x1000000;

/** @typedef {{fg: number | null, bg: number | null, flags: number}} Style */
/** `runs` says from which place in the text on which style counts; null: none of it has one.
 *  @typedef {{text: string, runs: {at: number, style: Style}[] | null, dropped?: number}} Line */

/** @type {Style} */
export const plain = Object.freeze({fg: null, bg: null, flags: 0});

const longestString = 1 << 22;  // of an OSC or DCS, pictures for instance: one that never ends must not swallow everything
const longestParams = 256;
const tabWidth = 8;
const maxTabbed = 1 << 20;
const control = /[\0-\x1f\x7f]/g;
const unseen = new RegExp(`[\\x80-\\x9f${invisible}]|\\p{Surrogate}`, 'gu');
const astral = /[\ud800-\udbff]/;

const setFlags = /** @type {Record<number, number>} */ ({1: bold, 2: dim, 3: italic, 4: underline, 7: inverse, 9: strike,
  21: underline});
const clearFlags = /** @type {Record<number, number>} */ ({22: bold | dim, 23: italic, 24: underline, 27: inverse,
  29: strike});

/** @param {Style} a @param {Style} b */
export function sameStyle(a, b) {
  return a === b || (a.fg === b.fg && a.bg === b.bg && a.flags === b.flags);
}

/** The colour behind 38 or 48, and how many parameters it took. @param {number[]} codes @param {number} at */
function extendedColour(codes, at) {
  const clamp = (/** @type {number | undefined} */ value) => Math.min(255, value ?? 0);
  if (codes[at] === 5) return {colour: clamp(codes[at + 1]), used: 2};
  if (codes[at] !== 2) return {colour: null, used: 1};
  const [red, green, blue] = [clamp(codes[at + 1]), clamp(codes[at + 2]), clamp(codes[at + 3])];
  return {colour: trueColour + red * 65536 + green * 256 + blue, used: 4};
}

/** `38:2::1:2:3` and `38:2:1:2:3` mean the same. @param {number[]} parts */
function colonColour(parts) {
  if (parts[1] === 2 && parts.length >= 6) parts.splice(2, 1);
  return extendedColour(parts, 1).colour;
}

/** @param {Style} style @param {number} code @returns {Style} */
function withCode(style, code) {
  if (code === 0) return plain;
  if (setFlags[code]) return {...style, flags: style.flags | /** @type {number} */ (setFlags[code])};
  if (clearFlags[code]) return {...style, flags: style.flags & ~/** @type {number} */ (clearFlags[code])};
  if (code >= 30 && code <= 37) return {...style, fg: code - 30};
  if (code === 39) return {...style, fg: null};
  if (code >= 40 && code <= 47) return {...style, bg: code - 40};
  if (code === 49) return {...style, bg: null};
  if (code >= 90 && code <= 97) return {...style, fg: code - 82};
  if (code >= 100 && code <= 107) return {...style, bg: code - 92};
  return style;
}

/** The style after `CSI params m`. @param {Style} style @param {string} params @returns {Style} */
export function restyled(style, params) {
  const fields = params.split(';');
  const codes = fields.map((field) => Number.parseInt(field, 10) || 0);
  for (let at = 0; at < fields.length; ++at) {
    const code = /** @type {number} */ (codes[at]);
    const parts = /** @type {string} */ (fields[at]).includes(':')
      ? /** @type {string} */ (fields[at]).split(':').map((part) => Number.parseInt(part, 10) || 0) : null;
    if (code === 38 || code === 48) {
      const found = parts ? {colour: colonColour(parts), used: 0} : extendedColour(codes, at + 1);
      at += found.used;
      if (found.colour !== null) style = code === 38 ? {...style, fg: found.colour} : {...style, bg: found.colour};
    } else {
      style = parts && code === 4 && parts[1] === 0 ? withCode(style, 24) : withCode(style, code);
    }
  }
  return style;
}

/** @typedef {'ground' | 'escape' | 'between' | 'csi' | 'string' | 'stringEscape'} State */

export class AnsiLines {
  constructor() {
    /** @type {Line[]} the last one is still being written */
    this.lines = [{text: '', runs: null}];
    this.style = plain;
    this.column = 0;
    /** @type {State} */
    this.state = 'ground';
    this.params = '';
    this.passed = 0;
    this.half = '';
    /** @type {{characters: string[], styles: Style[]} | null} the last line's cells while it is being written over */
    this.cells = null;
    this.length = 0;  // of the last line, in cells
  }

  /** Nothing is under way: what follows reads the same as at the very beginning. */
  get isClean() {
    return this.state === 'ground' && this.length === 0 && this.column === 0 && this.half === '' &&
        sameStyle(this.style, plain);
  }

  /** @param {string} text any portion of what comes */
  write(text) {
    let rest = this.half + text;
    this.half = '';
    const last = rest.charCodeAt(rest.length - 1);
    if (last >= 0xd800 && last <= 0xdbff) {
      this.half = rest.slice(-1);
      rest = rest.slice(0, -1);
    }
    let at = 0;
    while (at < rest.length) at = this.state === 'ground' ? this.#ground(rest, at) : this.#inSequence(rest, at);
    if (this.cells) this.#settle();
  }

  /** A line of ours, for bytes that are not there. @param {number} missing */
  writeDropped(missing) {
    if (this.length > 0) this.#newLine();
    this.lines[this.lines.length - 1] = {text: '', runs: null, dropped: missing};
    this.#newLine();
    [this.state, this.style, this.column, this.half] = ['ground', plain, 0, ''];
  }

  /** @param {string} text @param {number} at @returns {number} */
  #ground(text, at) {
    control.lastIndex = at;
    const found = control.exec(text);
    const end = found ? found.index : text.length;
    if (end > at) this.#print(text.slice(at, end));
    if (!found) return end;
    if (found[0] === '\x1b') this.state = 'escape';
    else this.#control(found[0]);
    return end + 1;
  }

  /** @param {string} character */
  #control(character) {
    if (character === '\n') this.#newLine();
    else if (character === '\r') this.column = 0;
    else if (character === '\b') this.column = Math.max(0, this.column - 1);
    else if (character === '\t') this.#tab();
    else this.#print(picture(character));
  }

  // Tabs alone make no line of hundreds of megabytes.
  #tab() {
    const next = (Math.floor(this.column / tabWidth) + 1) * tabWidth;
    if (next <= maxTabbed) this.column = next;
  }

  /** @param {string} text @param {number} at @returns {number} */
  #inSequence(text, at) {
    const character = /** @type {string} */ (text[at]);
    const code = text.charCodeAt(at);
    const isString = this.state === 'string' || this.state === 'stringEscape';
    if (code === 0x18 || code === 0x1a) this.state = 'ground';
    else if (this.state === 'stringEscape' && character === '\\') this.state = 'ground';
    else if (code === 0x1b) this.state = isString ? 'stringEscape' : 'escape';
    else if (this.state === 'string') this.#string(character);
    else if (this.state === 'escape' || this.state === 'stringEscape') return this.#escape(character, code, at);
    else if (code < 0x20) this.#control(character);
    else if (this.state === 'csi') return this.#csi(character, code, at);
    else return this.#between(code, at);
    return at + 1;
  }

  /** @param {string} character */
  #string(character) {
    this.passed += 1;
    if (character === '\x07' || this.passed > longestString) this.state = 'ground';
  }

  /** @param {string} character @param {number} code @param {number} at */
  #escape(character, code, at) {
    this.state = 'ground';
    if (code < 0x20) this.#control(character);
    else if (character === '[') [this.state, this.params] = ['csi', ''];
    else if (']PX^_'.includes(character)) [this.state, this.passed] = ['string', 0];
    else if (code <= 0x2f) this.state = 'between';
    else if (code > 0x7e) return at;  // nothing that an escape can stand before
    return at + 1;
  }

  /** @param {number} code @param {number} at */
  #between(code, at) {
    if (code <= 0x2f) return at + 1;
    this.state = 'ground';
    return code <= 0x7e ? at + 1 : at;
  }

  /** @param {string} character @param {number} code @param {number} at */
  #csi(character, code, at) {
    if (code > 0x7e) {
      this.state = 'ground';
      return at;
    }
    if (code < 0x40) {
      if (this.params.length < longestParams) this.params += character;
      return at + 1;
    }
    this.state = 'ground';
    if (/^[\d;:]*$/.test(this.params)) {
      if (character === 'm') this.style = restyled(this.style, this.params);
      else if (character === 'K') this.#erase(Number.parseInt(this.params, 10) || 0);
    }
    return at + 1;
  }

  #newLine() {
    if (this.cells) this.#settle();
    this.lines.push({text: '', runs: null});
    this.column = 0;
    this.length = 0;
  }

  /** @param {string} raw */
  #print(raw) {
    const text = raw.replace(unseen, picture);
    const size = astral.test(text) ? Array.from(text).length : text.length;
    if (this.column >= this.length && !this.cells) this.#append(' '.repeat(this.column - this.length), text, size);
    else this.#overwrite(Array.from(text));
    this.column += size;
  }

  /** @param {string} blanks @param {string} text @param {number} size */
  #append(blanks, text, size) {
    if (blanks !== '') this.#run(blanks, plain);
    this.#run(text, this.style);
    this.length += blanks.length + size;
  }

  /** @param {string} text @param {Style} style */
  #run(text, style) {
    const line = /** @type {Line} */ (this.lines[this.lines.length - 1]);
    const last = line.runs ? /** @type {{style: Style}} */ (line.runs[line.runs.length - 1]).style : plain;
    if (!sameStyle(last, style)) {
      line.runs ??= line.text === '' ? [] : [{at: 0, style: plain}];
      line.runs.push({at: line.text.length, style});
    }
    line.text += text;
  }

  /** @param {string[]} characters */
  #overwrite(characters) {
    const cells = this.#explode();
    while (cells.characters.length < this.column) {
      cells.characters.push(' ');
      cells.styles.push(plain);
    }
    for (let i = 0; i < characters.length; ++i) {
      cells.characters[this.column + i] = /** @type {string} */ (characters[i]);
      cells.styles[this.column + i] = this.style;
    }
    this.length = cells.characters.length;
  }

  /** @param {number} which */
  #erase(which) {
    const cells = this.#explode();
    if (which === 0) {
      cells.characters.length = Math.min(cells.characters.length, this.column);
      cells.styles.length = cells.characters.length;
    } else if (which === 1) {
      const end = Math.min(cells.characters.length, this.column + 1);
      cells.characters.fill(' ', 0, end);
      cells.styles.fill(plain, 0, end);
    } else if (which === 2) {
      cells.characters.length = cells.styles.length = 0;
    }
    this.length = cells.characters.length;
  }

  #explode() {
    if (this.cells) return this.cells;
    const line = /** @type {Line} */ (this.lines[this.lines.length - 1]);
    const characters = Array.from(line.text);
    /** @type {Style[]} */
    const styles = [];
    let place = 0;
    let run = -1;
    for (const character of characters) {
      while (line.runs && run + 1 < line.runs.length && /** @type {{at: number}} */ (line.runs[run + 1]).at <= place) run += 1;
      styles.push(run < 0 ? plain : /** @type {{style: Style}} */ (line.runs?.[run]).style);
      place += character.length;
    }
    this.cells = {characters, styles};
    return this.cells;
  }

  // Writes the cells back as text and runs.
  #settle() {
    const {characters, styles} = /** @type {{characters: string[], styles: Style[]}} */ (this.cells);
    this.cells = null;
    /** @type {{at: number, style: Style}[]} */
    const runs = [];
    let last = plain;
    let place = 0;
    for (let i = 0; i < characters.length; ++i) {
      const style = /** @type {Style} */ (styles[i]);
      if (!sameStyle(style, last)) runs.push({at: place, style});
      last = style;
      place += /** @type {string} */ (characters[i]).length;
    }
    if (runs.length > 0 && /** @type {{at: number}} */ (runs[0]).at > 0) runs.unshift({at: 0, style: plain});
    this.lines[this.lines.length - 1] = {text: characters.join(''), runs: runs.length > 0 ? runs : null};
  }
}
