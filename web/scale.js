// Numbers and times to places on the screen, and where the marks stand. Pure.

/** @typedef {{from: number, to: number, start: number, end: number}} Scale */

/** @param {Scale} scale @param {number} value */
export function place(scale, value) {
  const share = scale.to === scale.from ? 0 : (value - scale.from) / (scale.to - scale.from);
  return scale.start + share * (scale.end - scale.start);
}

/** @param {Scale} scale @param {number} position */
export function valueAt(scale, position) {
  const share = scale.end === scale.start ? 0 : (position - scale.start) / (scale.end - scale.start);
  return scale.from + share * (scale.to - scale.from);
}

/** Round numbers from 0 up, the last one not below the largest. @param {number} largest @param {number} [wanted] */
export function niceTicks(largest, wanted = 4) {
  const top = largest > 0 && Number.isFinite(largest) ? largest : 1;
  const raw = top / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = /** @type {number} */ ([1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= raw * 0.999999));
  const ticks = [];
  for (let i = 0; i <= Math.ceil(top / step - 1e-9); ++i) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const steps = [second, 2 * second, 5 * second, 10 * second, 15 * second, 30 * second, minute, 2 * minute, 5 * minute,
  10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 30 * day];

/** Moments at round local times. @param {number} from @param {number} to @param {number} most how many there may be */
export function timeTicks(from, to, most) {
  const span = Math.max(1, to - from);
  const step = steps.find((one) => span / one <= most) ?? Math.ceil(span / most);
  const offset = new Date(from).getTimezoneOffset() * minute;
  const ticks = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) ticks.push(at);
  return {step, ticks};
}

/** @param {number} at @param {number} step */
export function timeLabel(at, step) {
  const time = new Date(at);
  const two = (/** @type {number} */ value) => String(value).padStart(2, '0');
  if (step >= day) return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const text = `${two(time.getHours())}:${two(time.getMinutes())}`;
  return step >= minute ? text : `${text}:${two(time.getSeconds())}`;
}

/** A range moved or stretched around a point, within sensible bounds.
 *  @param {{from: number, to: number}} range @param {number} factor @param {number} around */
export function zoomed(range, factor, around) {
  const span = Math.min(400 * day, Math.max(5 * second, (range.to - range.from) * factor));
  const share = (around - range.from) / (range.to - range.from || 1);
  return {from: around - share * span, to: around + (1 - share) * span};
}
