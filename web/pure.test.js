import assert from 'node:assert/strict';
import {test} from 'node:test';

import {daemonNow, setDaemonClock} from './daemon_clock.js';
import {EventCursor} from './event_cursor.js';
import {layOut, neighbour, relatives} from './graph_layout.js';
import {OutputText, partOfLine, rowStarts} from './output_text.js';
import {formatRoute, loginCode, parseRoute} from './router.js';
import {niceTicks, place, timeTicks, valueAt, zoomed} from './scale.js';
import {State, approvalsOf, edgesOf, mostEvents, mostPausedEvents, spans} from './state.js';
import {chosen, filterOf} from './task_filter.js';
import {bytes, duration, firstLine, relative, secondsOf, visible, visibleLine} from './text.js';

const encode = (text) => new TextEncoder().encode(text);
const event = (seq, kind = 'notice', params = {}) => ({seq, kind, params, at: 0, isHistory: false});
const record = (number, more = {}) => ({id: `task-${number}`, prompt: `p${number}`, agent: 'a', group: 'default', priority: 0,
  state: 'queued', held: false, createdAt: new Date(number * 1000).toISOString(), startedAt: null, completedAt: null,
  attempts: 0, labels: {}, metadata: {}, result: 'long', ...more});

test('what nobody would see is made visible, and nothing else changes', () => {
  assert.equal(visible('a\u202eb\0c\x1bd\n\te'), 'a⟨U+202E⟩b␀c␛d\n\te');
  assert.equal(visibleLine('a\nb\tc'), 'a␊b␉c');
  assert.equal(visible('\ud800x😀'), '\ufffdx😀');
  assert.equal(firstLine('\n  first\u2066 line\nsecond'), 'first⟨U+2066⟩ line');
  assert.equal(firstLine(`${'x'.repeat(299)}😀more`).length, 300);
});

test('durations, distances and sizes read as people say them', () => {
  assert.deepEqual([0, 400, 1500, 59600, 123000, 3900000, 273600000].map(duration),
      ['0s', '400ms', '1.5s', '1m 0s', '2m 3s', '1h 5m', '3d 4h']);
  assert.equal(relative(0, 12000), '12s ago');
  assert.equal(relative(180000, 0), 'in 3m');
  assert.deepEqual([0, 1023, 1536, 1048576, 67108864].map(bytes), ['0 B', '1023 B', '1.5 KiB', '1.0 MiB', '64 MiB']);
  assert.deepEqual(['500ms', '10s', '5m', '1h', '90', 'x', ''].map(secondsOf), [0.5, 10, 300, 3600, 90, null, null]);
});

test('addresses lead to the same view and back', () => {
  for (const hash of ['#/tasks', '#/tasks?state=failed,queued&text=a%26b', '#/tasks/task-7', '#/health?range=6h']) {
    const {view, id, params} = parseRoute(hash);
    assert.equal(formatRoute(view, params, id), hash);
  }
  assert.equal(parseRoute('#/nothing?x=1').view, 'tasks');
  assert.equal(parseRoute('#/tasks/%E0%A4').id, '%E0%A4');
  assert.equal(parseRoute('#/tasks?__proto__=x').params.x, undefined);
});

test('a login code is found in a link, and rubbish is none', () => {
  const code = 'Abcdefghijklmnopqrst-_';
  assert.equal(loginCode(`http://127.0.0.1:1/#login=${code}`), code);
  assert.equal(loginCode(` ${code}\n`), code);
  assert.equal(loginCode('http://127.0.0.1:1/'), null);
});

test('events come in order, each once, whatever came first', () => {
  const cursor = new EventCursor();
  assert.deepEqual(cursor.take(event(7)), []);
  assert.deepEqual(cursor.begin(5).length, 0);
  assert.deepEqual(cursor.take(event(5)).map((one) => one.seq), [5]);
  assert.deepEqual(cursor.take(event(6)).map((one) => one.seq), [6, 7]);
  assert.deepEqual(cursor.take(event(6)), []);
  assert.deepEqual(cursor.take(event(10)), []);
  assert.deepEqual(cursor.skip(), {from: 8, to: 9});
  assert.deepEqual(cursor.drain().map((one) => one.seq), [10]);
  assert.equal(cursor.skip(), null);
});

test('random orders of delivery give every number once', () => {
  for (let seed = 1; seed < 200; ++seed) {
    const cursor = new EventCursor();
    const early = [...Array(seed % 17).keys()].map((i) => 50 + i);
    const heard = early.flatMap((seq) => cursor.take(event(seq)));
    heard.push(...cursor.begin(20));
    for (let seq = 15; seq < 90; ++seq) if (!early.includes(seq) || seq % 3 === 0) heard.push(...cursor.take(event(seq)));
    assert.deepEqual(heard.map((one) => one.seq), [...Array(70).keys()].map((i) => 20 + i));
  }
});

test('events change tasks, and unknown ones are asked for', () => {
  const state = new State();
  state.takePage([record(2), record(1)], true);
  state.apply(event(1, 'taskStarted', {taskId: 'task-2', state: 'running', attempts: 1, startedAt: 'x', pid: 5}));
  assert.equal(state.tasks.get('task-2').state, 'running');
  assert.equal(state.newestFirst[0].pid, 5);
  state.apply(event(2, 'taskQueued', {taskId: 'task-3', state: 'queued', attempts: 0}));
  assert.deepEqual([...state.unknown], ['task-3']);
  state.takeTask(record(3));
  assert.deepEqual(state.newestFirst.map((one) => one.number), [3, 2, 1]);
  state.apply(event(3, 'tasksRemoved', {taskIds: ['task-1']}));
  assert.equal(state.tasks.has('task-1'), false);
  assert.equal('result' in state.tasks.get('task-2'), false);
  state.apply({...event(1, 'taskQueued', {taskId: 'task-2', state: 'queued'}), isHistory: true});
  assert.equal(state.tasks.get('task-2').state, 'running');
});

test('the log of events is bounded', () => {
  const state = new State();
  for (let seq = 1; seq <= 12345; ++seq) state.apply(event(seq));
  assert.equal(state.events.length, mostEvents);
  assert.equal(state.events.at(-1).event.seq, 12345);
  assert.ok(state.log.length <= mostEvents + 500);
});

test('filters combine, and every order is a whole one', () => {
  const now = 100000;
  const tasks = [record(3, {state: 'failed', agent: 'b', completedAt: new Date(90000).toISOString()}), record(2, {held: true}),
    record(1, {state: 'failed', prompt: 'Fix THIS', completedAt: new Date(2000).toISOString()})].map((one) => ({...one, number: Number(one.id.slice(5))}));
  const found = (params) => chosen(tasks, filterOf(params), now).map((task) => task.number);
  assert.deepEqual(found({}), [3, 2, 1]);
  assert.deepEqual(found({state: 'failed'}), [3, 1]);
  assert.deepEqual(found({state: 'failed,queued', agent: 'a'}), [2, 1]);
  assert.deepEqual(found({state: 'held'}), [2]);
  assert.deepEqual(found({text: 'fix this'}), [1]);
  assert.deepEqual(found({since: '1m'}), [3, 2]);
  assert.deepEqual(found({sort: 'agent.up'}), [2, 1, 3]);
  assert.deepEqual(found({sort: 'id.up'}), [1, 2, 3]);
});

test('approvals are the firings that wait for a word', () => {
  const recent = [{id: 'b', at: '2', outcome: 'held', would: {}}, {id: 'c', at: '3', outcome: 'fired'}, {id: 'a', at: '1', outcome: 'held', would: {}}];
  assert.deepEqual(approvalsOf({recent}).map((one) => one.id), ['a', 'b']);
  assert.deepEqual(approvalsOf(null), []);
});

test('every arrow of a graph points right, circles included', () => {
  const edges = [['a', 'b'], ['b', 'c'], ['a', 'c'], ['d', 'e']].map(([from, to]) => ({from, to, kind: 'after'}));
  edges.push({from: 'c', to: 'a', kind: 'restartOf'}, {from: 'x', to: 'a', kind: 'after'});
  const layout = layOut(['a', 'b', 'c', 'd', 'e'], edges);
  assert.equal(layout.edges.length, 4);
  for (const edge of layout.edges) assert.ok(layout.places.get(edge.from).layer < layout.places.get(edge.to).layer);
  assert.equal(new Set([...layout.places.values()].map((one) => `${one.layer} ${one.row}`)).size, 5);
  assert.equal(neighbour(layout, 'a', 'right'), 'b');
  assert.equal(neighbour(layout, 'c', 'right'), null);
  assert.equal(neighbour(layout, 'a', 'down'), 'd');
  assert.deepEqual([...relatives('b', edges)].sort(), ['a', 'b', 'c', 'x']);
});

test('random graphs of 500 tasks are laid out without two in one place', () => {
  const ids = [...Array(500).keys()].map((i) => `t${i}`);
  const edges = ids.slice(1).map((to, i) => ({from: `t${(i * 7919) % (i + 1)}`, to, kind: i % 5 ? 'after' : 'restartOf'}));
  const layout = layOut(ids, edges);
  assert.equal(layout.edges.length, 499);
  for (const edge of layout.edges) assert.ok(layout.places.get(edge.from).layer < layout.places.get(edge.to).layer);
  assert.equal(new Set([...layout.places.values()].map((one) => `${one.layer} ${one.row}`)).size, 500);
});

test('edges come from after and restartOf', () => {
  assert.deepEqual(edgesOf([{id: 'b', metadata: {after: ['a'], restartOf: 'c'}}]),
      [{from: 'a', to: 'b', kind: 'after'}, {from: 'c', to: 'b', kind: 'restartOf'}]);
});

test('scales go both ways, and marks are round', () => {
  const scale = {from: 10, to: 20, start: 0, end: 100};
  assert.equal(place(scale, 15), 50);
  assert.equal(valueAt(scale, 50), 15);
  assert.deepEqual(niceTicks(7), [0, 2, 4, 6, 8]);
  assert.deepEqual(niceTicks(0), [0, 0.25, 0.5, 0.75, 1]);
  assert.ok(niceTicks(0.00123).at(-1) >= 0.00123);
  const {step, ticks} = timeTicks(0, 3600000, 6);
  assert.equal(step, 600000);
  assert.ok(ticks.every((at) => at % step === 0));
  assert.deepEqual(zoomed({from: 0, to: 100000}, 0.5, 50000), {from: 25000, to: 75000});
});

test('output in any portions is the same, with characters cut in two', () => {
  const text = 'one ü 漢 😀\n\x1b[31mred\x1b[0m\nlast';
  const all = encode(text);
  for (let cut = 0; cut <= all.length; ++cut) {
    const output = new OutputText();
    output.append(all.slice(0, cut), 0);
    output.append(all.slice(cut), cut);
    output.finish();
    assert.deepEqual(output.lines.map((line) => line.text), ['one ü 漢 😀', 'red', 'last']);
    assert.equal(output.end, all.length);
  }
});

test('output before what is there joins it, colours included', () => {
  const text = 'zero\n\x1b[32mgreen\nstill\n\x1b[0mplain\nend';
  const all = encode(text);
  const whole = new OutputText();
  whole.append(all, 0);
  for (let cut = 1; cut < all.length; ++cut) {
    const output = new OutputText();
    output.reset(cut);
    output.append(all.slice(cut), cut);
    output.prepend(all.slice(0, cut), 0);
    assert.deepEqual(output.lines, whole.lines);
    assert.equal(output.knowsNumbers, true);
  }
});

test('a gap is told with its bytes, also when it is found from below', () => {
  const above = new OutputText();
  above.append(encode('head\n'), 0);
  above.append(encode('tail\n'), 1000);
  assert.deepEqual(above.lines.map((line) => line.dropped ?? line.text), ['head', 995, 'tail', '']);
  const below = new OutputText();
  below.reset(1000);
  below.append(encode('tail\n'), 1000);
  below.prepend(encode('head\n'), 0, 995);
  assert.deepEqual(below.lines, above.lines);
});

test('a paused log keeps what waits, and says what it could not keep', () => {
  const state = new State();
  state.keeps = mostPausedEvents;
  for (let seq = 1; seq <= 2 * mostEvents; ++seq) state.apply(event(seq));
  assert.equal(state.events.length, 2 * mostEvents);
  for (let seq = 2 * mostEvents + 1; seq <= mostPausedEvents + 2000; ++seq) state.apply(event(seq));
  const [first, second] = state.log;
  assert.equal(first.gap.from, 1);
  assert.equal(first.gap.to + 1, second.event.seq);
  state.keeps = mostEvents;
  state.apply(event(mostPausedEvents + 2001));
  assert.equal(state.events.length, mostEvents);
});

test('a clock that is off is told from an answer that took its time', () => {
  const at = Date.now();
  setDaemonClock(at + 300000, at, at + 40);
  assert.ok(Math.abs(daemonNow() - Date.now() - 299980) < 50);
  setDaemonClock(at + 306500, at, at + 11000);
  assert.ok(Math.abs(daemonNow() - Date.now() - 299980) < 50, 'a slow answer that may mean the same changes nothing');
  setDaemonClock(at + 900, at, at + 1500);
  assert.ok(Math.abs(daemonNow() - Date.now()) < 50);
});

test('output without a line end is bounded, too', () => {
  const output = new OutputText();
  const portion = encode('0123456789abcdef'.repeat(65536));
  for (let at = 0; at < 12; ++at) output.append(portion, at * portion.length);
  assert.equal(output.lines.length, 1);
  assert.equal(output.lines[0].text.length, output.end - output.start);
  assert.ok(output.end - output.start <= 8 * 1024 * 1024);
});

test('a task that waits for its next attempt does not run', () => {
  const waits = {...record(1), startedAt: new Date(5000).toISOString(), attempts: 1};
  assert.deepEqual([spans(waits, 60000).waited, spans(waits, 60000).ran], [59000, NaN]);
});

test('an older task than those that were loaded does not become the oldest, whatever happens to it', () => {
  const state = new State();
  state.takePage([record(900), record(899)], false);
  for (const kind of ['taskEdited', 'taskStarted', 'taskHeld']) state.apply(event(1, kind, {taskId: 'task-5'}));
  state.apply(event(2, 'taskEdited', {taskId: 'task-899'}));
  assert.deepEqual([...state.unknown], ['task-899']);
  assert.equal(state.oldestId, 'task-899');
});

test('output is bounded at both ends', () => {
  const line = encode(`${'x'.repeat(99)}\n`);
  const block = encode(`${'y'.repeat(99)}\n`.repeat(1000));
  const output = new OutputText(1 << 20);
  for (let at = 0; at < 40; ++at) output.append(block, at * block.length);
  assert.ok(output.size <= 1 << 20);
  assert.ok(output.start > 0);
  assert.equal(output.number(output.lines.length - 1), 40001);
  const end = output.end;
  for (let more = 0; more < 12; ++more) assert.equal(output.prepend(block, output.start - block.length), 1000);
  assert.ok(output.size <= 1 << 20);
  assert.ok(output.end < end);
  assert.equal(partOfLine(line), 100);
  assert.equal(partOfLine(new Uint8Array([0x80, 0x80, 65])), 2);
});

test('long lines are cut into rows, wide characters counted twice', () => {
  assert.deepEqual(rowStarts('abcdef', 4), [0, 4]);
  assert.deepEqual(rowStarts('漢漢漢', 4), [0, 2]);
  assert.deepEqual(rowStarts('', 4), [0]);
  assert.equal(rowStarts('x'.repeat(1000000), 100).length, 10000);
});
