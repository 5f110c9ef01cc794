// A long list of which only the rows in sight exist. All rows are equally high.

import {h} from './dom.js';

const extra = 12;  // rows above and below what is in sight

/** @template T */
export class VirtualList {
  /** @param {{scroller: HTMLElement, body: HTMLElement, rowHeight: () => number, keyOf: (item: T) => string,
   *    make: (item: T) => HTMLElement, update: (row: any, item: T, index: number) => void, onEnd?: () => void}} options
   *  `body` is inside of `scroller` and gets the height of all rows; `onEnd` is called near the end of the list */
  constructor(options) {
    this.options = options;
    /** @type {T[]} */
    this.items = [];
    /** @type {Map<string, HTMLElement>} */
    this.rows = new Map();
    this.height = 0;
    this.frame = 0;
    options.body.classList.add('virtual');
    options.scroller.addEventListener('scroll', () => this.#later(), {passive: true});
    this.observer = new ResizeObserver(() => this.#later());
    this.observer.observe(options.scroller);
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** @param {T[]} items */
  show(items) {
    this.items = items;
    this.render();
  }

  #later() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.render());
  }

  /** Where the first row begins inside of the scroller. */
  get #top() {
    const {scroller, body} = this.options;
    return body.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop;
  }

  render() {
    const {scroller, body, rowHeight, keyOf, make, update, onEnd} = this.options;
    const row = rowHeight();
    const total = row * this.items.length;
    if (this.height !== total) body.style.height = `${total}px`;
    this.height = total;
    const above = scroller.scrollTop - this.#top;
    const first = Math.max(0, Math.floor(above / row) - extra);
    const last = Math.min(this.items.length, Math.ceil((above + scroller.clientHeight) / row) + extra);
    const shown = this.items.slice(first, last);
    /** @type {Map<string, HTMLElement>} */
    const kept = new Map(shown.map((item) => [keyOf(item), this.rows.get(keyOf(item)) ?? make(item)]));
    for (const [key, element] of this.rows) {
      if (kept.get(key) !== element) element.remove();
    }
    // In the document they stand as on the screen, for those who read it in another way.
    let place = body.firstElementChild;
    shown.forEach((item, i) => {
      const element = /** @type {HTMLElement} */ (kept.get(keyOf(item)));
      update(element, item, first + i);
      element.style.transform = `translateY(${(first + i) * row}px)`;
      if (element === place) place = place.nextElementSibling;
      else body.insertBefore(element, place);
    });
    this.rows = kept;
    if (onEnd && last >= this.items.length - 2 * extra) onEnd();
  }

  /** Scrolls no further than it must. @param {number} index */
  reveal(index) {
    const {scroller, rowHeight} = this.options;
    const row = rowHeight();
    const head = /** @type {HTMLElement | null} */ (scroller.querySelector('[data-head]'))?.offsetHeight ?? 0;
    const top = this.#top + index * row;
    if (top - head < scroller.scrollTop) scroller.scrollTop = top - head;
    else if (top + row > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + row - scroller.clientHeight;
    this.render();
  }
}

/** What stands where nothing is. @param {string} title @param {...(Node | string)} text */
export function emptyState(title, ...text) {
  return h('div', {class: 'empty'}, h('p', {class: 'empty-title'}, title), h('p', {}, ...text));
}
