// Output on the screen: only the rows in sight exist, each as high as every other, long lines cut into rows.

import {bold, dim, inverse, italic, plain, strike, trueColour, underline} from './ansi.js';
import {fill, h} from './dom.js';
import {rowStarts} from './output_text.js';
import {bytes, count} from './text.js';

/** @typedef {import('./ansi.js').Line} Line */
/** @typedef {import('./ansi.js').Style} Style */

const rowHeight = 18;
const longestRow = 5000;  // columns, without wrapping
const extra = 20;
const flagClasses = /** @type {[number, string][]} */ ([[bold, 'b'], [dim, 'd'], [italic, 'i'], [underline, 'u'], [strike, 's']]);

/** A colour of the palette beyond the first 16, or a true one. @param {number} colour */
export function cssColour(colour) {
  if (colour >= trueColour) return `#${(colour - trueColour).toString(16).padStart(6, '0')}`;
  if (colour >= 232) {
    const grey = 8 + (colour - 232) * 10;
    return `rgb(${grey}, ${grey}, ${grey})`;
  }
  const cube = colour - 16;
  const level = (/** @type {number} */ step) => (step === 0 ? 0 : 55 + step * 40);
  return `rgb(${level(Math.floor(cube / 36))}, ${level(Math.floor(cube / 6) % 6)}, ${level(cube % 6)})`;
}

/** @param {string} text @param {Style} style @param {boolean} isFound */
function piece(text, style, isFound) {
  if (style === plain && !isFound) return document.createTextNode(text);
  const element = h(isFound ? 'mark' : 'span', {}, text);
  const classes = flagClasses.filter(([flag]) => style.flags & flag).map(([, name]) => name);
  const isInverse = (style.flags & inverse) !== 0;
  if (isInverse) classes.push('inv');
  const [front, back] = isInverse ? [style.bg, style.fg] : [style.fg, style.bg];
  if (front !== null && front < 16) classes.push(`f${front}`);
  else if (front !== null) element.style.color = cssColour(front);
  if (back !== null && back < 16) classes.push(`g${back}`);
  else if (back !== null) element.style.backgroundColor = cssColour(back);
  if (classes.length > 0) element.className = classes.join(' ');
  return element;
}

// Lower case may be longer than what it is of, so places in it are not those in the text.
/** @param {string} found */
function matcher(found) {
  return new RegExp(found.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'giu');
}

/** What of a line stands in one row. @param {Line} line @param {number} from @param {number} to @param {string} found */
function rowNodes(line, from, to, found) {
  const cuts = new Set([from, to]);
  for (const run of line.runs ?? []) if (run.at > from && run.at < to) cuts.add(run.at);
  /** @type {[number, number][]} */
  const marks = [];
  if (found !== '') {
    for (const {index: at, 0: text} of line.text.slice(0, to + found.length).matchAll(matcher(found))) {
      const end = at + text.length;
      if (end <= from || at >= to) continue;
      marks.push([at, end]);
      for (const cut of [at, end]) if (cut > from && cut < to) cuts.add(cut);
    }
  }
  const places = [...cuts].sort((a, b) => a - b);
  const nodes = [];
  let run = -1;
  for (let i = 0; i + 1 < places.length; ++i) {
    const at = /** @type {number} */ (places[i]);
    while (line.runs && run + 1 < line.runs.length && /** @type {{at: number}} */ (line.runs[run + 1]).at <= at) run += 1;
    const style = run < 0 ? plain : /** @type {{style: Style}} */ (line.runs?.[run]).style;
    const isFound = marks.some(([start, end]) => start <= at && at < end);
    nodes.push(piece(line.text.slice(at, places[i + 1]), style, isFound));
  }
  return nodes;
}

export class OutputPane {
  /** @param {{onScrolled: (isAtEnd: boolean) => void, onTop: () => void, onBottom: () => void}} told */
  constructor(told) {
    this.told = told;
    this.body = h('div', {class: 'output-body'});
    this.element = h('div', {class: 'output', 'data-output': true, tabindex: '0', role: 'log', 'aria-live': 'off', 'aria-label': 'Output'}, this.body);
    this.probe = h('span', {class: 'output-probe', 'aria-hidden': 'true'}, 'x'.repeat(100));
    this.element.append(this.probe);
    /** @type {import('./output_text.js').OutputText | null} */
    this.text = null;
    /** @type {number[]} the first row of each line */
    this.starts = [];
    this.above = 0;
    this.rows = 0;
    this.columns = longestRow;
    this.isWrapped = true;
    this.found = '';
    this.isFollowing = true;
    this.lastTop = 0;  // where following has put it
    this.element.addEventListener('scroll', () => this.#scrolled(), {passive: true});
    this.observer = new ResizeObserver(() => this.relayout());
    this.observer.observe(this.element);
  }

  destroy() {
    this.observer.disconnect();
  }

  /** @param {Line} line */
  #rowsOf(line) {
    return line.dropped ? 1 : rowStarts(line.text, this.columns).length;
  }

  /** Everything anew: other lines at the top, another width. */
  relayout() {
    const width = this.probe.getBoundingClientRect().width / 100 || 8;
    const gutter = 72;
    this.columns = this.isWrapped ? Math.max(20, Math.floor((this.element.clientWidth - gutter - 16) / width)) : longestRow;
    this.starts = [];
    this.above = this.text?.above ?? 0;
    this.update();
  }

  /** @param {import('./output_text.js').OutputText} text */
  show(text) {
    this.text = text;
    this.relayout();
  }

  /** Lines were added, or the last one was written on; some may have gone at the top. */
  update() {
    const {text} = this;
    if (!text) return;
    const {lines} = text;
    this.#heedScroll();
    const removed = this.#forgetTop(text.above - this.above);
    this.above = text.above;
    for (let i = this.starts.length; i < lines.length; ++i) {
      this.starts.push(i === 0 ? 0 : /** @type {number} */ (this.starts[i - 1]) + this.#rowsOf(/** @type {Line} */ (lines[i - 1])));
    }
    const last = /** @type {Line} */ (lines[lines.length - 1]);
    const isOpen = last.text === '' && !last.dropped && lines.length > 1;  // nothing was written there yet
    this.rows = /** @type {number} */ (this.starts[lines.length - 1]) + (isOpen ? 0 : this.#rowsOf(last));
    this.body.style.height = `${this.rows * rowHeight}px`;
    if (this.isFollowing) this.#scrollToEnd();
    else if (removed > 0) this.element.scrollTop -= removed * rowHeight;
    this.render();
  }

  #scrollToEnd() {
    this.element.scrollTop = this.element.scrollHeight;
    this.lastTop = this.element.scrollTop;
  }

  // The event that tells of it comes a frame later: output that comes quickly must not pull the reader back before that.
  #heedScroll() {
    const {scrollTop, clientHeight, scrollHeight} = this.element;
    if (this.isFollowing && scrollTop < this.lastTop - 1 && scrollTop + clientHeight < scrollHeight - rowHeight) this.told.onScrolled(false);
  }

  // How many rows that were.
  /** @param {number} gone */
  #forgetTop(gone) {
    if (gone <= 0 || this.starts.length === 0) return 0;
    this.starts.splice(0, gone);
    const first = this.starts[0] ?? 0;
    this.starts = this.starts.map((start) => start - first);
    return first;
  }

  /** So many lines were put before the first one; what was in sight stays there. @param {number} added */
  keepPlace(added) {
    const top = this.element.scrollTop;
    this.relayout();
    const shift = this.starts[added] ?? 0;
    this.element.scrollTop = top + shift * rowHeight;
    this.render();
  }

  #scrolled() {
    const {scrollTop, clientHeight, scrollHeight} = this.element;
    const isAtEnd = scrollTop + clientHeight >= scrollHeight - rowHeight;
    this.told.onScrolled(isAtEnd);
    this.render();
    if (scrollTop < 40 * rowHeight) this.told.onTop();
    if (isAtEnd) this.told.onBottom();
  }

  /** @param {number} row */
  #lineAt(row) {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (/** @type {number} */ (this.starts[middle]) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  render() {
    const {text} = this;
    if (!text) return;
    const first = Math.max(0, Math.floor(this.element.scrollTop / rowHeight) - extra);
    const last = Math.min(this.rows, Math.ceil((this.element.scrollTop + this.element.clientHeight) / rowHeight) + extra);
    const rows = [];
    for (let index = this.#lineAt(first), row = first; row < last && index < text.lines.length; ++index) {
      const line = /** @type {Line} */ (text.lines[index]);
      const starts = line.dropped ? [0] : rowStarts(line.text, this.columns);
      const begin = /** @type {number} */ (this.starts[index]);
      for (let part = row - begin; part < starts.length && row < last; ++part, ++row) rows.push(this.#row(line, index, starts, part, row));
    }
    fill(this.body, rows);
  }

  /** @param {Line} line @param {number} index @param {number[]} starts @param {number} part @param {number} row */
  #row(line, index, starts, part, row) {
    const number = this.text?.number(index) ?? 0;
    const label = part > 0 ? '' : this.text?.knowsNumbers ? String(number) : `+${number}`;
    const content = h('span', {class: 'output-text'});
    if (line.dropped) content.append(h('span', {class: 'dropped'}, `${count(line.dropped)} bytes dropped (${bytes(line.dropped)})`));
    else fill(content, rowNodes(line, starts[part] ?? 0, starts[part + 1] ?? line.text.length, this.found));
    const element = h('div', {class: 'output-row', 'data-line': part === 0 ? String(number) : null},
        h('span', {class: 'output-number', 'aria-hidden': 'true'}, label), content);
    element.style.transform = `translateY(${row * rowHeight}px)`;
    return element;
  }

  /** Indices of lines that have the text. @param {string} wanted */
  find(wanted) {
    this.found = wanted;
    const hits = [];
    if (this.found !== '') {
      const lines = this.text?.lines ?? [];
      const match = new RegExp(matcher(this.found), 'iu');
      for (let i = 0; i < lines.length; ++i) if (match.test(/** @type {Line} */ (lines[i]).text)) hits.push(i);
    }
    this.render();
    return hits;
  }

  /** @param {number} index of a line */
  reveal(index) {
    const row = this.starts[index] ?? 0;
    this.element.scrollTop = Math.max(0, row * rowHeight - this.element.clientHeight / 3);
    this.render();
  }
}

