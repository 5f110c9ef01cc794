// Whether the queue runs: pauses of it and of its groups, agents that wait for their usage limit.

import {daemonNow} from '../daemon_clock.js';
import {button, fill, h} from '../dom.js';
import {attempt} from '../feedback.js';
import {icon} from '../icons.js';
import {moment, relative, visibleLine} from '../text.js';

// Who may not ask for the queue hears of pauses only as they happen: until then both ways are offered.
/** @param {import('../app.js').App} app */
function fallback(app) {
  const supervisor = app.state.status?.subsystems?.supervisor;
  return supervisor ? {...supervisor, paused: app.state.isPaused, groups: [], heldAgents: []} : null;
}

/** @param {import('../app.js').App} app @param {HTMLElement} notes */
export function queueBar(app, notes) {
  const element = h('div', {class: 'queue-bar'});
  let shown = '';
  const toggle = (/** @type {boolean} */ isPaused, /** @type {string | undefined} */ group) => {
    const method = isPaused ? 'queue.resume' : 'queue.pause';
    const what = `${isPaused ? 'Resume' : 'Pause'} ${group ? `group ${visibleLine(group)}` : 'queue'}`;
    const pressed = button(what, {class: isPaused ? 'small primary' : 'small', 'data-online': true}, icon(isPaused ? 'play' : 'pause'), what);
    pressed.addEventListener('click', () => attempt(notes, pressed, async () => {
      await app.call(method, group ? {group} : {});
      app.state.stale.add('queue');
      app.loader.catchUp();
    }, what));
    return pressed;
  };
  const update = () => {
    const queue = app.state.queue ?? fallback(app);
    const wanted = JSON.stringify([queue?.paused, queue?.groups, queue?.heldAgents, queue?.running, queue?.maxRunning, app.session?.role]);
    if (wanted === shown || !queue) return;
    shown = wanted;
    const mayPause = app.may('queue.pause');
    const pausedGroups = queue.groups.filter((/** @type {any} */ group) => group.paused);
    fill(element, [
      ...queue.heldAgents.map((/** @type {any} */ held) => h('span', {class: 'chip is-warn', title: held.until}, icon('held'),
          `${visibleLine(held.agent)} waits for its limit, ${relative(moment(held.until), daemonNow())}`)),
      ...pausedGroups.map((/** @type {any} */ group) => mayPause ? toggle(true, group.name) : h('span', {class: 'chip is-warn'}, icon('pause'), `group ${visibleLine(group.name)} paused`)),
      h('span', {class: 'dim slots'}, `${queue.running} of ${queue.maxRunning} slots`),
      mayPause && queue.paused !== true && toggle(false, undefined),
      mayPause && queue.paused !== false && toggle(true, undefined),
    ]);
  };
  return {element, update};
}
