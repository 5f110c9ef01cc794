// Drawings of 16 × 16. The states have a shape each, so that colour is not needed to tell them apart.

import {s} from './dom.js';

/** Paths; those that begin with `F` are filled, others are lines. @type {Record<string, string[]>} */
const drawings = {
  queued: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11z', 'M8 5v3.2l2 1.3'],
  held: ['M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11z', 'M6.5 6v4M9.5 6v4'],
  running: ['FM8 2a6 6 0 0 1 0 12z', 'M8 2.5a5.5 5.5 0 0 0 0 11'],
  completed: ['FM8 1.8a6.2 6.2 0 1 1 0 12.4a6.2 6.2 0 0 1 0-12.4z', 'KM5.2 8.2l2 2l3.6-4.2'],
  failed: ['FM8 .8L15.2 8L8 15.2L.8 8z', 'KM8 4.6v4M8 10.4v.9'],
  cancelled: ['M2.8 2.8h10.4v10.4H2.8z', 'M5 8h6'],
  tasks: ['M5.5 4h8M5.5 8h8M5.5 12h8', 'FM2 3h2v2H2zM2 7h2v2H2zM2 11h2v2H2z'],
  timeline: ['FM2 3h6v2.2H2zM5 6.9h8v2.2H5zM8 10.8h6V13H8z'],
  graph: ['FM1.5 6h4v4h-4zM10.5 2h4v4h-4zM10.5 10h4v4h-4z', 'M5.5 8h2.2V4h2.8M7.7 8v4h2.8'],
  events: ['M1.5 8.5h3l2-5l3 9l2-6l1 2h2'],
  rules: ['M9 1.5L3.5 9H8l-1 5.5L12.5 7H8z'],
  servers: ['M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11z', 'FM4.4 4h1.5v1.5H4.4zM4.4 10.5h1.5V12H4.4z'],
  health: ['M8 13.5C3 10 1.8 7.6 1.8 5.6A3.2 3.2 0 0 1 8 4.5a3.2 3.2 0 0 1 6.2 1.1c0 2-1.2 4.4-6.2 7.9z'],
  plus: ['M8 3v10M3 8h10'],
  close: ['M4 4l8 8M12 4l-8 8'],
  menu: ['M2.5 4.5h11M2.5 8h11M2.5 11.5h11'],
  search: ['M7 2.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 0 1 0-9z', 'M10.5 10.5l3.5 3.5'],
  back: ['M9.5 3.5L5 8l4.5 4.5'],
  down: ['M3.5 6.5L8 11l4.5-4.5'],
  up: ['M3.5 9.5L8 5l4.5 4.5'],
  pause: ['FM4.5 3h2.5v10H4.5zM9 3h2.5v10H9z'],
  play: ['FM4.5 2.8L13 8l-8.5 5.2z'],
  copy: ['M5.5 5.5h8v8h-8z', 'M10.5 5.5v-3h-8v8h3'],
  download: ['M8 2v8M4.5 7L8 10.5L11.5 7M2.5 13.5h11'],
  restart: ['M13 8a5 5 0 1 1-1.6-3.7M13.3 1.8v3h-3'],
  stop: ['M3.5 3.5h9v9h-9z'],
  table: ['M2 3h12v10H2zM2 6.5h12M2 9.8h12M6.5 3v10'],
  warning: ['FM8 1.5L15.3 14H.7z', 'KM8 6v4M8 11.3v1'],
  link: ['M6.5 9.5l3-3M7.5 4.5l1.5-1.5a2.8 2.8 0 0 1 4 4l-1.5 1.5M8.5 11.5L7 13a2.8 2.8 0 0 1-4-4l1.5-1.5'],
  wrap: ['M2 3.5h12M2 8h9.5a2.3 2.3 0 0 1 0 4.6H9M11 10.5l-2 2l2 2M2 12.5h4'],
  gear: ['M8 5.5a2.5 2.5 0 1 1 0 5a2.5 2.5 0 0 1 0-5z', 'M8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4'],
};

/** @param {string} name @param {string} [kind] a class more */
export function icon(name, kind = '') {
  const paths = (drawings[name] ?? []).map((d) => {
    const mark = d[0] === 'F' ? 'fill' : d[0] === 'K' ? 'knockout' : 'line';
    return s('path', {d: mark === 'line' ? d : d.slice(1), class: mark});
  });
  return s('svg', {class: `icon ${kind}`, viewBox: '0 0 16 16', 'aria-hidden': 'true', 'data-icon': name}, ...paths);
}

/** Shape and word of a state. @param {string} state @param {string} [word] */
export function stateMark(state, word = state) {
  const mark = document.createElement('span');
  mark.className = `state is-${state}`;
  mark.append(icon(state), word);
  return mark;
}
