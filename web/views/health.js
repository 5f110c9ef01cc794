// How the daemon is, and what it did: problems first, then facts, then plots.

import {daemonNow} from '../daemon_clock.js';
import {button, fill, h, set, setText, timeElement} from '../dom.js';
import {icon} from '../icons.js';
import {plot} from '../plot.js';
import {bytes, count, duration, figure, moment, relative, secondsOf, visibleLine} from '../text.js';

const ranges = ['15m', '1h', '6h', '24h'];
const points = 120;
const seconds = (/** @type {number} */ value) => duration(value * 1000);
const micros = (/** @type {number} */ value) => (value >= 1000 ? `${figure(value / 1000)} ms` : `${figure(value)} µs`);

/** @type {import('../plot.js').PlotKind[]} */
const kinds = [
  {title: 'Tasks a minute, by outcome', isStacked: true, scale: (value, step) => (value * 60) / step, format: figure, say: (value, step) => `${count(value)} in ${duration(step * 1000)}`,
    series: [{name: 'completed', label: 'completed', tone: 'good'}, {name: 'failed', label: 'failed', tone: 'bad'}, {name: 'cancelled', label: 'cancelled', tone: 'dim'}]},
  {title: 'Queue and running', format: figure, say: count, series: [{name: 'queued', label: 'queued', tone: 'second'}, {name: 'running', label: 'running', tone: 'accent'}, {name: 'submitted', label: 'submitted', tone: 'dim'}]},
  {title: 'Waiting times', format: seconds, say: (value) => `${figure(value)} s`, series: [{name: 'waitP50', label: 'median', tone: 'accent'}, {name: 'waitP95', label: '95 %', tone: 'second'}]},
  {title: 'Run times', format: seconds, say: (value) => `${figure(value)} s`, series: [{name: 'runP50', label: 'median', tone: 'accent'}, {name: 'runP95', label: '95 %', tone: 'second'}]},
  {title: 'Requests', format: figure, say: (value, step) => `${count(value)} in ${duration(step * 1000)}`, series: [{name: 'requests', label: 'requests', tone: 'accent'}]},
  {title: 'Request times', format: micros, say: (value) => `${figure(value)} µs`, series: [{name: 'requestP50', label: 'median', tone: 'accent'}, {name: 'requestP99', label: '99 %', tone: 'second'}]},
  {title: 'Lag of the loop', format: (value) => `${figure(value)} ms`, say: (value) => `${figure(value)} ms`, series: [{name: 'lagP99', label: '99 %', tone: 'accent'}]},
  {title: 'Memory', format: bytes, say: bytes, series: [{name: 'memory', label: 'resident', tone: 'accent'}]},
  {title: 'Clients', format: figure, say: count, series: [{name: 'clients', label: 'clients', tone: 'accent'}]},
];

/** @type {import('../app.js').ViewFactory} */
export const healthView = (app, main, firstRoute) => {
  let params = firstRoute.params;
  let isAsking = false;
  let askedAt = 0;
  let step = 1;
  const verdict = h('div', {class: 'verdict', role: 'status'});
  const problems = h('ul', {class: 'problems', 'aria-label': 'Problems'});
  const facts = h('dl', {class: 'facts wide'});
  const choices = ranges.map((name) => button(name, {class: 'segment', on: {click: () => app.go('health', {range: name}, {replace: true})}}));
  const plots = kinds.map(plot);
  const metricsNote = h('p', {class: 'dim pad', hidden: true});
  fill(main, [h('div', {class: 'scroller flow health', tabindex: '0', role: 'region', 'aria-label': 'Health'},
      h('div', {class: 'health-top'}, verdict, problems, facts),
      h('div', {class: 'filters'}, h('h2', {class: 'caption'}, 'Over time'), h('div', {class: 'segments', role: 'group', 'aria-label': 'Range'}, ...choices)),
      metricsNote, h('div', {class: 'plots'}, ...plots.map((one) => one.element)))]);

  const range = () => secondsOf(ranges.includes(params.range ?? '') ? /** @type {string} */ (params.range) : '1h') ?? 3600;
  const loadMetrics = async () => {
    const due = askedAt + Math.min(10, Math.max(2, step)) * 1000;
    if (isAsking || !app.isLive || Date.now() < due) return;
    isAsking = true;
    askedAt = Date.now();
    const wanted = range();
    try {
      const told = await app.call('daemon.metrics', {seconds: wanted, points});
      step = told.step;
      const time = (/** @type {any} */ value) => (typeof value === 'string' ? moment(value) : value);
      if (wanted === range()) for (const one of plots) one.show({...told, from: time(told.from), to: time(told.to)});
      set(metricsNote, {hidden: true});
    } catch (error) {
      setText(metricsNote, `The numbers could not be had: ${/** @type {Error} */ (error).message}`);
      set(metricsNote, {hidden: !app.isLive});
    }
    isAsking = false;
  };

  const update = () => {
    for (const choice of choices) set(choice, {'aria-pressed': String(secondsOf(choice.textContent ?? '') === range())});
    const {status} = app.state;
    if (!status) return;
    const isWell = status.health === 'healthy';
    const wanted = JSON.stringify([status.health, status.problems]);
    if (verdict.dataset.is !== wanted) {
      verdict.dataset.is = wanted;
      set(verdict, {class: `verdict ${isWell ? 'is-good' : 'is-bad'}`, 'data-health': status.health});
      fill(verdict, [icon(isWell ? 'completed' : 'failed'), h('b', {}, status.health), h('span', {class: 'dim'}, isWell ? 'No problems are known.' : `${status.problems.length} ${status.problems.length === 1 ? 'problem' : 'problems'}`)]);
      fill(problems, status.problems.map((/** @type {any} */ problem) => h('li', {'data-problem': problem.subsystem}, icon('warning'), h('b', {}, visibleLine(problem.subsystem)), h('span', {}, visibleLine(problem.message)))));
      set(problems, {hidden: status.problems.length === 0});
    }
    showFacts(status);
  };

  /** @param {any} status */
  function showFacts(status) {
    const parts = status.subsystems ?? {};
    const doors = Object.entries(parts.ipc?.byDoor ?? {}).map(([door, many]) => `${door} ${many}`).join(', ');
    /** @type {[string, Node | string | null][]} */
    const list = [['Version', visibleLine(status.version)], ['Up', duration(status.uptime_seconds * 1000)], ['Process', String(status.pid)],
      ['Running', `${count(parts.supervisor?.running ?? 0)} of ${count(parts.supervisor?.maxRunning ?? 0)} slots`], ['Queued', count(parts.supervisor?.queued ?? 0)],
      ['Clients', count(parts.ipc?.clients ?? 0)], ['Connections', doors], ['HTTP door', parts.http?.url ?? 'closed'],
      ['TLS door', parts.tls ? parts.tls.address : 'closed'], ['Certificate', parts.tls?.expiresAt ? timeElement(moment(parts.tls.expiresAt)) : null],
      ['Automation', parts.automation ? `${parts.automation.enabled ? 'on' : 'off'}, ${parts.automation.ruleCount} rules` : null], ['Longest turn', parts.loop ? `${figure(parts.loop.longest_turn_ms)} ms in the last minute` : null],
      ['Last end', status.last_end ? visibleLine(`${status.last_end.how}${status.last_end.at ? `, ${relative(moment(status.last_end.at), daemonNow())}` : ''}`) : null]];
    const shown = list.filter(([, value]) => value !== null);
    const names = shown.map(([name]) => name).join();
    if (facts.dataset.names !== names) {
      facts.dataset.names = names;
      fill(facts, shown.map(([name]) => h('div', {}, h('dt', {}, name), h('dd', {}))));
    }
    shown.forEach(([, value], i) => {
      const place = /** @type {Element} */ (facts.children[i]?.lastElementChild);
      if (typeof value === 'string') setText(place, value);
      else if (place.firstElementChild?.getAttribute('datetime') !== /** @type {Element} */ (value).getAttribute('datetime')) fill(place, [value]);
    });
  }

  loadMetrics();
  return {
    update,
    tick: () => void loadMetrics(),
    route: (route) => {
      params = route.params;
      askedAt = 0;
      loadMetrics();
      update();
    },
    destroy: () => plots.forEach((one) => one.destroy()),
  };
};
