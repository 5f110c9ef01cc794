// The output model against a terminal written in another way: a cell at a time, no shortcuts.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {AnsiLines, plain, trueColour} from './ansi.js';

const streams = Number(process.env.DUET_STREAMS ?? 100000);

/** Numbers that look random and are the same in every run. @param {number} seed */
function generator(seed) {
  let state = seed >>> 0;
  return (/** @type {number} */ below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const isUnseen = (/** @type {number} */ code) => (code >= 0x7f && code <= 0x9f) || code < 0x20 || code === 0x61c ||
    code === 0x200b || code === 0x200e || code === 0x200f || (code >= 0x2028 && code <= 0x202e) ||
    (code >= 0x2060 && code <= 0x2069) || code === 0xfeff || (code >= 0xd800 && code <= 0xdfff);

/** @param {string} character */
function shown(character) {
  const code = character.codePointAt(0);
  if (!isUnseen(code)) return [character];
  if (code < 0x20) return [String.fromCodePoint(0x2400 + code)];
  if (code === 0x7f) return ['␡'];
  if (code >= 0xd800 && code <= 0xdfff) return ['\ufffd'];
  return [...`⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`];
}

/** The reference: the whole text at once, sequences cut out by regular expressions, then cell by cell. */
function reference(/** @type {string} */ text) {
  const sequence = new RegExp([
    String.raw`^\x1b[\]PX^_](?:[^\x07\x18\x1a\x1b])*(?:\x07|\x18|\x1a|\x1b\\|(?=\x1b)|$)`,
    String.raw`^\x1b\[([0-?]|[ -/]|[\0-\x17\x19\x1c-\x1f])*(?:([@-~])|[\x18\x1a]|(?=[\x1b\x7f-\uffff])|$)`,
    String.raw`^\x1b[\0-\x17\x19\x1c-\x1f]`,
    String.raw`^\x1b([ -/]|[\0-\x17\x19\x1c-\x1f])*(?:[0-~]|[\x18\x1a]|(?=[\x1b\x7f-\uffff])|$)`].join('|'));
  const rows = [[]];
  let style = {fg: null, bg: null, flags: 0};
  let column = 0;
  const row = () => rows[rows.length - 1];
  const put = (/** @type {string} */ character) => {
    while (row().length < column) row().push({character: ' ', style: plain});
    row()[column] = {character, style: {...style}};
    column += 1;
  };
  const control = (/** @type {string} */ character) => {
    if (character === '\n') rows.push([]), column = 0;
    else if (character === '\r') column = 0;
    else if (character === '\b') column = column > 0 ? column - 1 : 0;
    else if (character === '\t') do column += 1; while (column % 8 !== 0);
    else shown(character).forEach(put);
  };
  while (text !== '') {
    const found = sequence.exec(text);
    if (found && found[0] !== '') {
      text = text.slice(found[0].length);
      const isString = /^\x1b[\]PX^_]/.test(found[0]);
      if (!isString) {
        const inside = found[0].slice(1);
        for (const character of inside) {
          if (character < ' ' && character !== '\x18' && character !== '\x1a') control(character);
        }
        const clean = inside.replace(/[\0-\x1f]/g, '');
        const csi = /^\[([\d;:]*)([mK])$/.exec(clean);
        if (csi && csi[2] === 'm') style = sgr(style, csi[1]);
        if (csi && csi[2] === 'K') erase(row(), column, parseInt(csi[1], 10) || 0);
      }
      continue;
    }
    const character = String.fromCodePoint(text.codePointAt(0));
    text = text.slice(character.length);
    if (character < ' ' || character === '\x7f') control(character);
    else shown(character).forEach(put);
  }
  return rows;
}

function erase(cells, column, which) {
  if (which === 0) cells.length = Math.min(cells.length, column);
  if (which === 1) for (let i = 0; i < cells.length && i <= column; ++i) cells[i] = {character: ' ', style: plain};
  if (which === 2) cells.length = 0;
}

function sgr(style, params) {
  const next = {...style};
  const list = params.split(';').map((one) => one.split(':').map((part) => parseInt(part, 10) || 0));
  const byte = (value) => Math.min(255, value === undefined ? 0 : value);
  while (list.length > 0) {
    const [code, ...sub] = list.shift();
    const bits = {1: 1, 2: 2, 3: 4, 4: 8, 21: 8, 7: 16, 9: 32}[code];
    const without = {22: 3, 23: 4, 24: 8, 27: 16, 29: 32}[code];
    if (code === 0) Object.assign(next, {fg: null, bg: null, flags: 0});
    else if (code === 4 && sub.length > 0 && sub[0] === 0) next.flags &= ~8;
    else if (bits) next.flags |= bits;
    else if (without) next.flags &= ~without;
    else if (code >= 30 && code < 38) next.fg = code - 30;
    else if (code >= 40 && code < 48) next.bg = code - 40;
    else if (code >= 90 && code < 98) next.fg = code - 90 + 8;
    else if (code >= 100 && code < 108) next.bg = code - 100 + 8;
    else if (code === 39) next.fg = null;
    else if (code === 49) next.bg = null;
    else if (code === 38 || code === 48) {
      const name = code === 38 ? 'fg' : 'bg';
      if (sub.length > 0) {
        const rest = sub[0] === 2 && sub.length >= 5 ? [2, ...sub.slice(2)] : sub;
        if (rest[0] === 5) next[name] = byte(rest[1]);
        if (rest[0] === 2) next[name] = trueColour + byte(rest[1]) * 65536 + byte(rest[2]) * 256 + byte(rest[3]);
      } else {
        const kind = list.shift()?.[0];
        const take = () => byte(list.shift()?.[0]);
        if (kind === 5) next[name] = take();
        if (kind === 2) next[name] = trueColour + take() * 65536 + take() * 256 + take();
      }
    }
  }
  return next;
}

/** The lines of the model, cell by cell. @param {AnsiLines} model */
function cellsOf(model) {
  return model.lines.map((line) => {
    let run = -1;
    let place = 0;
    return [...line.text].map((character) => {
      while (line.runs && run + 1 < line.runs.length && line.runs[run + 1].at <= place) run += 1;
      place += character.length;
      return {character, style: {...(run < 0 ? plain : line.runs[run].style)}};
    });
  });
}

const pieces = ['a', 'b', ' ', 'word', 'ü', '漢', '😀', '\n', '\r', '\r\n', '\b', '\t', '\x1b[0m', '\x1b[m', '\x1b[1;31m',
  '\x1b[38;5;208m', '\x1b[48;2;1;2;300m', '\x1b[38:2::9:8:7m', '\x1b[38:5:77m', '\x1b[4:3m', '\x1b[4:0m', '\x1b[7;9m',
  '\x1b[22;23;24;27;29m', '\x1b[39;49m', '\x1b[97;107m', '\x1b[K', '\x1b[1K', '\x1b[2K', '\x1b[2J', '\x1b[3A', '\x1b[?25l',
  '\x1b[>4;2m', '\x1b[38;5m', '\x1b[38;2;1m', '\x1b]0;title\x07', '\x1b]8;;http://x\x1b\\', '\x1bP1$r\x1b\\', '\x1b(B', '\x1b#8',
  '\x1b=', '\x1b', '\x1b[', '\x1b]', '\x1b[1\n2m', '\x1b[1\x18', '\x00', '\x07', '\x7f', '\x85', '\u202e', '\u2066', '\ufeff',
  '\x1b[12', ';', 'm', '\x1b\r', '\x1b ', '\x1b[ü', '\ud83d', '\u200b'];

test('100,000 random streams, in random portions, read as the reference reads them', () => {
  for (let seed = 1; seed <= streams; ++seed) {
    const random = generator(seed);
    let text = '';
    for (let left = 1 + random(24); left > 0; --left) text += pieces[random(pieces.length)];
    const model = new AnsiLines();
    for (let at = 0; at < text.length;) {
      const size = 1 + random(random(3) === 0 ? 40 : 3);
      model.write(text.slice(at, at + size));
      at += size;
    }
    const end = model.half === '' ? text : text.slice(0, -1);  // half a character at the very end still waits
    const expected = reference(end);
    try {
      assert.deepEqual(cellsOf(model), expected.map((row) => row.map((cell) => ({...cell, style: {...cell.style}}))));
    } catch (error) {
      error.message = `seed ${seed}, ${JSON.stringify(text)}: ${error.message}`;
      throw error;
    }
  }
});

test('a sequence vanishes whole at every split point', () => {
  const text = 'one\x1b]8;;http://example/\x1b\\link\x1b]8;;\x07 \x1b[1;38;5;208mtwo\x1b[0m\x1b(B three\r\nfour\n';
  const whole = new AnsiLines();
  whole.write(text);
  for (let at = 0; at <= text.length; ++at) {
    const model = new AnsiLines();
    model.write(text.slice(0, at));
    model.write(text.slice(at));
    assert.deepEqual(model.lines, whole.lines);
  }
  assert.deepEqual(whole.lines.map((line) => line.text), ['onelink two three', 'four', '']);
});

test('a progress bar that writes over itself is one line', () => {
  const model = new AnsiLines();
  for (let percent = 0; percent <= 100; percent += 5) model.write(`\r\x1b[K\x1b[32m${'#'.repeat(percent / 5)}\x1b[0m ${percent} %`);
  assert.equal(model.lines.length, 1);
  assert.equal(model.lines[0].text, `${'#'.repeat(20)} 100 %`);
});

test('a line of 3 MiB is all there', () => {
  const text = Array.from({length: 3 << 18}, (_, i) => String(i % 10000).padStart(4, '0')).join('');
  const model = new AnsiLines();
  for (let at = 0; at < text.length; at += 65536) model.write(text.slice(at, at + 65536));
  model.write('\t.');
  assert.ok(model.lines[0].text === `${text}.`, 'tabs beyond 1 Mi columns do nothing');
});

test('a string that never ends swallows 4 Mi characters, not everything', () => {
  const model = new AnsiLines();
  model.write(`\x1b]0;${'x'.repeat(4200000)}\nhere`);
  assert.equal(model.lines.at(-1).text, 'here');
});

test('what was dropped is a line of its own, and what follows begins anew', () => {
  const model = new AnsiLines();
  model.write('head\x1b[31mred');
  model.writeDropped(12345);
  model.write('tail');
  assert.deepEqual(model.lines.map((line) => line.dropped ?? line.text), ['headred', 12345, 'tail']);
  assert.equal(model.lines[2].runs, null);
});
