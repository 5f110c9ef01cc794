// Text as people see it: times, sizes, and characters that would otherwise be invisible or turn the line around.
// Pure.

const pictures = 0x2400;
/** For a class of characters: marks that change the direction, separators, fillers, tags, the byte order mark. Joiners stay:
 *  many scripts, and the pictures of people, need them. */
export const invisible = '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f' +
    '\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}';
// With C0 and C1 controls, and halves of surrogate pairs.
const unseen = new RegExp(`[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f${invisible}]|\\p{Surrogate}`, 'gu');
const hidden = new RegExp(`[\\0-\\x1f\\x7f-\\x9f${invisible}]|\\p{Surrogate}`, 'gu');

/** One character that nobody would see, as characters that everybody does. @param {string} character */
export function picture(character) {
  const code = /** @type {number} */ (character.codePointAt(0));
  if (code < 0x20) return String.fromCharCode(pictures + code);
  if (code === 0x7f) return '\u2421';
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

/** All that can be seen stays; line ends and tabs do, too. @param {unknown} text */
export function visible(text) {
  return String(text).replace(unseen, picture);
}

/** The same on one line. @param {unknown} text */
export function visibleLine(text) {
  return String(text).replace(hidden, picture);
}

/** The first line that says something, cut. @param {string} text @param {number} [most] */
export function firstLine(text, most = 300) {
  const line = text.trimStart().split('\n', 1)[0] ?? '';
  return visibleLine(line.length > most ? line.slice(0, most).replace(/\p{Surrogate}$/u, '') + '…' : line);
}

/** `2m 3s`, `0.4s`, `1h 5m`, `3d 4h`. @param {number} ms */
export function duration(ms) {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 0.0005) return '0s';
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))}ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** One unit only, which is how far away a moment is. @param {number} ms */
export function roughly(ms) {
  const seconds = Math.round(Math.abs(ms) / 1000);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

/** `12s ago`, `in 3m`, `now`. @param {number} at @param {number} now */
export function relative(at, now) {
  const away = at - now;
  if (Math.abs(away) < 1000) return 'now';
  return away < 0 ? `${roughly(away)} ago` : `in ${roughly(away)}`;
}

const two = (/** @type {number} */ value) => String(value).padStart(2, '0');

/** Local time, with milliseconds and offset: what one can look up in a log. @param {number} at */
export function exact(at) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return 'unknown';
  const offset = -time.getTimezoneOffset();
  const zone = `${offset < 0 ? '-' : '+'}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clock(at)}` +
      `.${String(time.getMilliseconds()).padStart(3, '0')} ${zone}`;
}

/** `14:02:11` @param {number} at */
export function clock(at) {
  const time = new Date(at);
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `1.5 MiB` @param {number} value */
export function bytes(value) {
  let unit = 0;
  let left = value;
  while (left >= 1023.95 && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? left : left.toFixed(left < 10 ? 1 : 0)} ${units[unit]}`;
}

const grouped = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

/** `12,345` @param {number} value */
export function count(value) {
  return grouped.format(value);
}

/** `1 task`, `3 tasks` @param {number} value @param {string} word */
export function counted(value, word) {
  return `${count(value)} ${word}${value === 1 ? '' : 's'}`;
}

/** Up to three digits that matter. @param {number} value */
export function figure(value) {
  const size = Math.abs(value);
  if (size >= 1000) return count(value);
  if (size === 0 || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(3)));
}

/** A time of the daemon in milliseconds; NaN if there is none. @param {string | null | undefined} text */
export function moment(text) {
  return text ? Date.parse(text) : NaN;
}

const unitSeconds = /** @type {Record<string, number>} */ ({ms: 0.001, s: 1, m: 60, h: 3600, d: 86400});

/** Seconds of `500ms`, `10s`, `5m`, `1h`, `90`; null if it is none of these. @param {string} text */
export function secondsOf(text) {
  const parts = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text.trim());
  return parts ? Number(parts[1]) * (unitSeconds[parts[2] ?? 's'] ?? 1) : null;
}
