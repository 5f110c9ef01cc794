// Elements, made without markup: whatever text comes from the daemon stays text.

import {daemonNow} from './daemon_clock.js';
import {exact, relative} from './text.js';

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Attributes `on` has listeners, `style` properties, `class`, `text`; others are attributes */

const svgNamespace = 'http://www.w3.org/2000/svg';

/** @param {Element} element @param {Attributes} attributes */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    else if (name === 'style') Object.assign(/** @type {HTMLElement} */ (element).style, value);
    else if (name === 'text') setText(element, value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value === true ? '' : String(value));
  }
  return element;
}

/** Touches the document only if something changes. @param {Element} element @param {unknown} text */
export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** @param {Element} element @param {Child[]} children */
export function fill(element, children) {
  element.replaceChildren(...children.flatMap((child) =>
    child === null || child === undefined || child === false ? [] : [child instanceof Node ? child : String(child)]));
}

/** @template {keyof HTMLElementTagNameMap} T
 *  @param {T} tag @param {Attributes} [attributes] @param {...Child} children @returns {HTMLElementTagNameMap[T]} */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  set(element, attributes);
  if (children.length > 0) fill(element, children);
  return element;
}

/** @template {keyof SVGElementTagNameMap} T
 *  @param {T} tag @param {Attributes} [attributes] @param {...Child} children @returns {SVGElementTagNameMap[T]} */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(svgNamespace, tag);
  set(element, attributes);
  if (children.length > 0) fill(element, children);
  return /** @type {any} */ (element);
}

/** A moment, as far away as it is now; the exact one on hover. @param {number} at in milliseconds */
export function timeElement(at) {
  const element = h('time', {class: 'when'});
  setTime(element, at);
  return element;
}

/** @param {HTMLElement} element @param {number} at */
export function setTime(element, at) {
  if (Number.isNaN(at)) {
    setText(element, '–');
    return set(element, {datetime: null, title: null});
  }
  const iso = new Date(at).toISOString();
  if (element.getAttribute('datetime') !== iso) set(element, {datetime: iso, title: exact(at)});
  setText(element, relative(at, daemonNow()));
  return element;
}

/** Keeps what says how long ago it is true. @param {ParentNode} root */
export function refreshTimes(root) {
  const now = daemonNow();
  for (const element of root.querySelectorAll('time.when[datetime]')) {
    setText(element, relative(Date.parse(/** @type {string} */ (element.getAttribute('datetime'))), now));
  }
}

/** @param {string} label @param {Attributes} attributes @param {...Child} children */
export function button(label, attributes = {}, ...children) {
  return h('button', {type: 'button', ...attributes}, ...(children.length > 0 ? children : [label]));
}

/** Reuses elements by key and puts them in order. @template T
 *  @param {Element} parent @param {T[]} items @param {(item: T) => string} keyOf
 *  @param {(item: T) => Element} make @param {(element: any, item: T) => void} update */
export function keyed(parent, items, keyOf, make, update) {
  /** @type {Map<string, Element>} */
  const old = new Map();
  for (const child of parent.children) old.set(/** @type {HTMLElement} */ (child).dataset.key ?? '', child);
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let element = old.get(key);
    old.delete(key);
    if (!element) {
      element = make(item);
      /** @type {HTMLElement} */ (element).dataset.key = key;
    }
    update(element, item);
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  for (const element of old.values()) element.remove();
}
