// A plot over time: an axis, lines or stacked columns, and the numbers at the cursor.

import {h, s, fill, set, setText} from './dom.js';
import {niceTicks, place, timeLabel, timeTicks} from './scale.js';
import {tableButton} from './table_dialog.js';
import {exact} from './text.js';

/** @typedef {{name: string, label: string, tone: string}} Series */
/** `scale` turns a number of the method into one of the axis; `format` is for the axis, `say` for the number itself.
 *  @typedef {{title: string, series: Series[], isStacked?: boolean, scale?: (value: number, step: number) => number,
 *    format: (value: number) => string, say: (value: number, step: number) => string}} PlotKind */
/** @typedef {{from: number, to: number, step: number, series: Record<string, (number | null)[]>}} Metrics */

const height = 150;
const left = 52;
const bottom = 22;
const top = 8;

/** Pieces without nulls. @param {(number | null)[]} values */
function pieces(values) {
  /** @type {[number, number][][]} */
  const found = [];
  let open = false;
  values.forEach((value, i) => {
    if (value === null || value === undefined) return void (open = false);
    if (!open) found.push([]);
    open = true;
    found[found.length - 1]?.push([i, value]);
  });
  return found;
}

/** @param {PlotKind} kind */
export function plot(kind) {
  const drawing = s('svg', {class: 'plot-drawing', role: 'img', 'aria-label': kind.title});
  const cursor = s('line', {class: 'plot-cursor', y1: String(top), y2: String(height - bottom), visibility: 'hidden'});
  const values = new Map(kind.series.map((one) => [one.name, h('b', {}, '–')]));
  const when = h('span', {class: 'dim plot-when'});
  const legend = h('ul', {class: 'plot-legend'}, ...kind.series.map((one) => h('li', {'data-series': one.name, class: `tone-${one.tone}`},
      h('i', {class: 'swatch', 'aria-hidden': 'true'}), h('span', {}, one.label), values.get(one.name))));
  const none = h('p', {class: 'plot-none dim', hidden: true}, 'Nothing was measured in this time.');
  /** @type {Metrics | null} */
  let data = null;
  let width = 400;
  let at = -1;
  const table = tableButton(kind.title, ['Time', ...kind.series.map((one) => one.label)], () => {
    const rows = [];
    for (let i = 0; data && i < (kind.series[0] ? data.series[kind.series[0].name]?.length ?? 0 : 0); ++i) {
      rows.push([exact(timeAt(i)), ...kind.series.map((one) => data?.series[one.name]?.[i] ?? '–')]);
    }
    return rows;
  });
  const element = h('section', {class: 'plot', 'aria-label': kind.title}, h('header', {}, h('h2', {}, kind.title), when, h('span', {class: 'grow'}), table), legend, h('div', {class: 'plot-place'}, drawing, none));
  const timeAt = (/** @type {number} */ i) => (data?.from ?? 0) + i * (data?.step ?? 1) * 1000;
  const scaled = (/** @type {number} */ value) => (kind.scale && data ? kind.scale(value, data.step) : value);

  function draw() {
    if (!data) return;
    const {from, to, series} = data;
    const lists = kind.series.map((one) => series[one.name] ?? []);
    const many = Math.max(0, ...lists.map((list) => list.length));
    const sums = kind.isStacked ? Array.from({length: many}, (_, i) => lists.reduce((sum, list) => sum + (list[i] ?? 0), 0)) : lists.flat();
    const largest = Math.max(0, ...sums.map((value) => scaled(value ?? 0)));
    const ticks = niceTicks(largest, 3);
    const y = {from: 0, to: ticks[ticks.length - 1] ?? 1, start: height - bottom, end: top};
    const x = {from, to, start: left, end: width - 6};
    const isEmpty = lists.every((list) => list.every((value) => value === null || value === undefined));
    set(none, {hidden: !isEmpty});
    set(drawing, {viewBox: `0 0 ${width} ${height}`, width: String(width), height: String(height)});
    const lines = ticks.flatMap((value) => [s('line', {class: 'grid-line', x1: String(left), x2: String(width - 6), y1: String(place(y, value)), y2: String(place(y, value))}),
      s('text', {class: 'tick-text', x: String(left - 6), y: String(place(y, value) + 4), 'text-anchor': 'end'}, kind.format(value))]);
    const marks = timeTicks(from, to, Math.max(2, Math.floor(width / 110)));
    const times = marks.ticks.map((time) => s('text', {class: 'tick-text', x: String(place(x, time)), y: String(height - 5), 'text-anchor': 'middle'}, timeLabel(time, marks.step)));
    fill(drawing, [...lines, ...times, ...(kind.isStacked ? columns(lists, x, y, many) : curves(lists, x, y)), cursor]);
  }

  /** @param {(number | null)[][]} lists @param {import('./scale.js').Scale} x @param {import('./scale.js').Scale} y */
  const curves = (lists, x, y) => lists.flatMap((list, n) => pieces(list).map((piece) => {
    const points = piece.map(([i, value]) => `${place(x, timeAt(i)).toFixed(1)} ${place(y, scaled(value)).toFixed(1)}`);
    const isAlone = points.length === 1;
    return s('path', {class: `curve tone-${kind.series[n]?.tone}${isAlone ? ' is-dot' : ''}`, d: `M${points.join('L')}${isAlone ? 'h0.01' : ''}`});
  }));

  /** @param {(number | null)[][]} lists @param {import('./scale.js').Scale} x @param {import('./scale.js').Scale} y @param {number} many */
  const columns = (lists, x, y, many) => {
    const wide = Math.max(1, (x.end - x.start) / Math.max(1, many) - 1);
    const below = new Array(many).fill(0);
    return lists.map((list, n) => {
      let d = '';
      list.forEach((value, i) => {
        if (!value) return;
        const base = below[i];
        below[i] += scaled(value);
        d += `M${place(x, timeAt(i)).toFixed(1)} ${place(y, base).toFixed(1)}V${place(y, below[i]).toFixed(1)}h${wide.toFixed(1)}V${place(y, base).toFixed(1)}z`;
      });
      return s('path', {class: `column tone-${kind.series[n]?.tone}`, d});
    });
  };

  // The last number, unless somebody points at another one.
  function showValues() {
    if (!data) return;
    const many = Math.max(0, ...kind.series.map((one) => data?.series[one.name]?.length ?? 0));
    const i = at >= 0 ? at : many - 1;
    for (const [name, place_] of values) {
      const value = data.series[name]?.[i];
      setText(place_, value === null || value === undefined ? '–' : kind.say(value, data.step));
      set(place_, {'data-value': value ?? null});
    }
    setText(when, at >= 0 ? exact(timeAt(i)) : '');
    set(cursor, {visibility: at >= 0 ? 'visible' : 'hidden'});
    if (at >= 0) {
      const px = String(place({from: data.from, to: data.to, start: left, end: width - 6}, timeAt(i)));
      set(cursor, {x1: px, x2: px});
    }
  }

  const point = (/** @type {number} */ clientX) => {
    if (!data) return;
    const many = Math.max(0, ...kind.series.map((one) => data?.series[one.name]?.length ?? 0));
    const share = (clientX - drawing.getBoundingClientRect().left - left) / (width - 6 - left);
    at = Math.min(many - 1, Math.max(0, Math.round((share * (data.to - data.from)) / (data.step * 1000))));
    showValues();
  };
  drawing.addEventListener('pointermove', (event) => point(event.clientX));
  drawing.addEventListener('pointerleave', () => {
    at = -1;
    showValues();
  });
  const observer = new ResizeObserver(([entry]) => {
    width = Math.max(220, Math.floor(entry?.contentRect.width ?? width));
    draw();
    showValues();
  });
  observer.observe(/** @type {Element} */ (drawing.parentElement));
  return {element, destroy: () => observer.disconnect(), show: (/** @type {Metrics} */ metrics) => {
    data = metrics;
    draw();
    showValues();
  }};
}
