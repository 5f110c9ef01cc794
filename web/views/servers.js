// Language servers that the daemon runs.

import {button, fill, h, keyed, set} from '../dom.js';
import {attempt} from '../feedback.js';
import {icon} from '../icons.js';
import {counted, visible, visibleLine} from '../text.js';
import {emptyState} from '../virtual_list.js';

const often = 300;  // milliseconds: a server that was killed is started again after a second
const shapes = /** @type {Record<string, string>} */ ({ready: 'completed', starting: 'running', restarting: 'failed', stopping: 'cancelled', stopped: 'cancelled'});

/** @type {import('../app.js').ViewFactory} */
export const serversView = (app, main) => {
  /** @type {any[] | null} */
  let servers = null;
  let isAsking = false;
  const notes = h('div', {class: 'notes'});
  const cards = h('div', {class: 'cards', role: 'list', 'aria-label': 'Language servers'});
  const empty = h('div', {class: 'empty-place'});
  fill(main, [notes, h('div', {class: 'scroller flow', tabindex: '0', role: 'region', 'aria-label': 'Servers'}, cards, empty)]);

  // No event tells of them.
  const load = async () => {
    if (isAsking || !app.isLive) return;
    isAsking = true;
    try {
      ({servers} = await app.call('lsp.list'));
      update();
    } catch {
      // It is asked for again in a moment.
    }
    isAsking = false;
  };

  /** @param {any} card @param {any} server */
  const show = (card, server) => {
    const wanted = JSON.stringify([server, app.isLive]);
    if (card.shown === wanted) return;
    card.shown = wanted;
    const shape = shapes[server.state] ?? 'queued';
    set(card, {'data-state': server.state});
    const stop = app.may('lsp.stop') && server.state !== 'stopped' && button('Stop', {class: 'small', 'aria-label': `Stop ${visibleLine(server.name)}`, disabled: !app.isLive}, icon('stop'), 'Stop');
    if (stop) stop.addEventListener('click', () => attempt(notes, stop, async () => {
      await app.call('lsp.stop', {server: server.name});
      await load();
    }, `Stop ${server.name}`));
    const fact = (/** @type {string} */ name, /** @type {any} */ value) => value !== undefined && value !== null && value !== '' && h('div', {}, h('dt', {}, name), h('dd', {}, visibleLine(value)));
    fill(card, [h('header', {}, h('h2', {}, visibleLine(server.name)), h('span', {class: `state is-${shape}`}, icon(shape), h('span', {}, server.state)), h('span', {class: 'grow'}), stop),
      h('dl', {class: 'facts'}, fact('Version', [server.serverName, server.serverVersion].filter(Boolean).join(' ')), fact('Folder', server.root), fact('Process', server.pid),
          fact('Documents', server.documents), fact('Pending', server.pending), fact('Failures', server.failures), fact('Command', server.command?.join(' '))),
      server.failure && h('details', {class: 'failure'}, h('summary', {}, icon('warning'), `Last failure: ${visibleLine(server.failure.cause ?? 'unknown')}`),
          h('pre', {tabindex: '0', 'aria-label': 'Failure'}, visible(JSON.stringify(server.failure, null, 2))))]);
  };

  const update = () => {
    if (!servers) return;
    keyed(cards, servers, (server) => `${server.name} ${server.root}`, (server) => h('article', {class: 'card', role: 'listitem', 'data-server': server.name}), show);
    set(cards, {'aria-label': counted(servers.length, 'language server'), hidden: servers.length === 0});
    const word = servers.length === 0 ? 'none' : '';
    if (empty.dataset.word === word) return;
    empty.dataset.word = word;
    fill(empty, word === '' ? [] : [emptyState('No language server is running', 'One is started when it is first asked: ', h('code', {}, 'duet-rpc lsp hover FILE:LINE'))]);
  };
  load();
  const timer = setInterval(() => !document.hidden && load(), often);
  return {update, destroy: () => clearInterval(timer)};
};
