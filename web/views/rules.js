// Automation: what waits for a word first, then the rules with their switches, then what they did.

import {button, fill, h, keyed, set, setText, timeElement} from '../dom.js';
import {attempt} from '../feedback.js';
import {stateMark} from '../icons.js';
import {count, moment, visible, visibleLine} from '../text.js';
import {emptyState} from '../virtual_list.js';

/** @param {any} rule */
function triggerText(rule) {
  const parts = [rule.source, rule.type, rule.pattern, rule.cron && `cron ${rule.cron}`, rule.timezone].filter(Boolean);
  return visibleLine(parts.join(' · ')) || 'any event';
}

/** All of it: whoever approves has to see what would run. @param {any} would */
function wouldText(would) {
  const what = would?.prompt ?? would?.message ?? would?.command?.join(' ') ?? '';
  return `${would?.action ?? ''}${would?.agent ? ` ${visibleLine(would.agent)}` : ''}: ${visible(String(what))}`;
}

/** @type {import('../app.js').ViewFactory} */
export const rulesView = (app, main) => {
  const notes = h('div', {class: 'notes'});
  app.shell.notes = notes;
  const approvals = h('div', {class: 'approvals'});
  const waiting = h('section', {class: 'panel is-strong', hidden: true, 'aria-label': 'Approvals'}, h('h2', {}, 'Waiting for your word'), approvals);
  const engineSwitch = ruleSwitch('Automation', undefined);
  const engine = h('div', {class: 'bar'}, h('div', {class: 'engine'}, engineSwitch.element, h('span', {class: 'engine-word'})), h('span', {class: 'dim rule-count'}));
  const head = h('div', {role: 'row', class: 'row head'}, ...['On', 'Rule', 'Trigger', 'Action', 'Next', 'Last'].map((label) => h('div', {role: 'columnheader', class: `cell-${label.toLowerCase()}`}, label)));
  const rules = h('div', {role: 'rowgroup'});
  const firingHead = h('div', {role: 'row', class: 'row head'}, ...['When', 'Rule', 'Outcome', 'Reason', 'Count', 'Task'].map((label) => h('div', {role: 'columnheader', class: `cell-${label.toLowerCase()}`}, label)));
  const firings = h('div', {role: 'rowgroup'});
  const table = h('div', {role: 'table', class: 'grid rules', 'aria-label': 'Rules'}, h('div', {role: 'rowgroup', class: 'head-group'}, head), rules);
  const history = h('div', {role: 'table', class: 'grid firings', 'aria-label': 'Firings'}, h('div', {role: 'rowgroup', class: 'head-group'}, firingHead), firings);
  const empty = h('div', {class: 'empty-place'});
  const noFirings = h('p', {class: 'dim pad', hidden: true}, 'No rule has fired yet.');
  fill(main, [engine, notes, waiting, h('div', {class: 'scroller flow', tabindex: '0', role: 'region', 'aria-label': 'Rules and firings'}, table, empty,
      h('section', {class: 'history', 'aria-label': 'What they did'}, h('h2', {class: 'caption'}, 'Firings'), noFirings, history))]);

  /** @param {string} name @param {string | undefined} ruleId */
  function ruleSwitch(name, ruleId) {
    const element = button('', {role: 'switch', class: 'switch', 'aria-label': name, 'aria-checked': 'false'}, h('span', {class: 'thumb'}));
    element.addEventListener('click', () => attempt(notes, element, async () => {
      const isOn = element.getAttribute('aria-checked') === 'true';
      const {enabled} = await app.call(isOn ? 'automation.disable' : 'automation.enable', ruleId === undefined ? {} : {ruleId});
      set(element, {'aria-checked': String(enabled)});
      refresh();
    }, name));
    return {element};
  }
  const refresh = () => {
    app.state.stale.add('automation');
    app.loader.catchUp();
  };

  /** @param {any} firing */
  const approvalCard = (firing) => {
    const act = (/** @type {string} */ word, /** @type {string} */ method, /** @type {string} */ kind) => {
      const pressed = button(word, {class: kind, 'aria-label': `${word} ${firing.id}`, 'data-online': true});
      pressed.addEventListener('click', () => attempt(notes, pressed, async () => {
        await app.call(method, {id: firing.id});
        refresh();
      }, `${word} ${firing.id}`).finally(refresh));
      return pressed;
    };
    return h('div', {class: 'approval', 'data-firing': firing.id},
        h('div', {class: 'approval-what'}, h('p', {}, h('b', {}, visibleLine(firing.ruleId)), ' ', h('span', {class: 'dim'}, visibleLine(firing.cause ?? ''), firing.count > 1 ? ` ×${firing.count}` : '', ' · ', timeElement(moment(firing.at)))),
            h('pre', {class: 'mono would', tabindex: '0', role: 'group', 'aria-label': `What ${firing.id} would do`}, wouldText(firing.would))),
        app.may('automation.approve') && act('Approve', 'automation.approve', 'primary'),
        app.may('automation.deny') && act('Deny', 'automation.deny', ''));
  };

  /** @param {any} rule */
  const ruleRow = (rule) => {
    const row = h('div', {role: 'row', class: 'row', 'data-rule': rule.id});
    const control = ruleSwitch(visibleLine(rule.id), rule.id).element;
    const cell = (/** @type {string} */ name) => h('div', {role: 'cell', class: `cell-${name}`});
    const cells = ['on', 'rule', 'trigger', 'action', 'next', 'last'].map(cell);
    cells[0]?.append(app.may('automation.enable') ? control : h('span', {class: 'on-word'}));
    row.append(...cells);
    return Object.assign(row, {control, cells});
  };

  /** @param {any} row @param {any} rule */
  const showRule = (row, rule) => {
    // A press has moved it before the answer came, so what was shown last says nothing about it.
    set(row.control, {'aria-checked': String(rule.enabled), disabled: !app.isLive});
    const wanted = JSON.stringify(rule);
    if (row.shown === wanted) return;
    row.shown = wanted;
    const [on, name, trigger, action, next, last] = row.cells;
    if (on.firstElementChild?.className === 'on-word') setText(on.firstElementChild, rule.enabled ? 'on' : 'off');
    fill(name, [h('b', {}, visibleLine(rule.id)), rule.requiresApproval && h('span', {class: 'chip'}, 'asks first'), rule.waiting && h('span', {class: 'chip is-warn'}, 'waits')]);
    setText(trigger, triggerText(rule));
    setText(action, visibleLine([rule.action, rule.agent].filter(Boolean).join(' · ')));
    fill(next, [rule.nextAt ? timeElement(moment(rule.nextAt)) : '–']);
    fill(last, [rule.lastFiredAt ? timeElement(moment(rule.lastFiredAt)) : 'never']);
  };

  /** @param {any} firing */
  const firingRow = (firing) => h('div', {role: 'row', class: 'row', 'data-firing': firing.id});

  /** @param {any} row @param {any} firing */
  const showFiring = (row, firing) => {
    const wanted = JSON.stringify(firing);
    if (row.shown === wanted) return;
    row.shown = wanted;
    const cell = (/** @type {string} */ name, /** @type {(Node | string)[]} */ ...children) => h('div', {role: 'cell', class: `cell-${name}`}, ...children);
    fill(row, [cell('when', timeElement(moment(firing.at))), cell('rule', visibleLine(firing.ruleId)),
      cell('outcome', stateMark(firing.outcome === 'fired' ? 'completed' : 'held', firing.outcome)),
      cell('reason', visibleLine([firing.cause, firing.reason].filter(Boolean).join(' · '))), cell('count', `×${firing.count}`),
      cell('task', firing.taskId ? h('a', {class: 'mono', href: `#/tasks/${firing.taskId}`}, firing.taskId) : '')]);
  };

  const update = () => {
    const {automation} = app.state;
    if (!automation) return;
    set(engineSwitch.element, {'aria-checked': String(automation.enabled), disabled: !app.isLive, hidden: !app.may('automation.enable')});
    setText(/** @type {Element} */ (engine.querySelector('.engine-word')), automation.enabled ? 'Automation is on' : 'Automation is off: no rule fires');
    setText(/** @type {Element} */ (engine.querySelector('.rule-count')), `${count(automation.ruleCount)} ${automation.ruleCount === 1 ? 'rule' : 'rules'}`);
    const pending = app.approvals;
    set(waiting, {hidden: pending.length === 0});
    keyed(approvals, pending, (firing) => firing.id, approvalCard, () => {});
    keyed(rules, automation.rules, (/** @type {any} */ rule) => rule.id, ruleRow, showRule);
    keyed(firings, automation.recent, (/** @type {any} */ firing) => firing.id, firingRow, showFiring);
    set(noFirings, {hidden: automation.recent.length > 0});
    set(history, {hidden: automation.recent.length === 0});
    set(table, {hidden: automation.rules.length === 0});
    const word = automation.rules.length === 0 ? 'none' : '';
    if (empty.dataset.word !== word) {
      empty.dataset.word = word;
      fill(empty, word === '' ? [] : [emptyState('No rules', 'Rules start tasks when files change, at times, or when tasks end. They are ', h('code', {}, '[[rules]]'), ' in ', h('code', {}, '.duet-rpc.toml'), '.')]);
    }
    for (const element of approvals.querySelectorAll('button')) set(element, {disabled: !app.isLive});
  };
  return {update};
};

