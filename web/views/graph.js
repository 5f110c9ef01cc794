// What comes after what: tasks in layers, arrows from left to right.

import {button, fill, h, keyed, s, set, setText} from '../dom.js';
import {layOut, neighbour, relatives} from '../graph_layout.js';
import {icon} from '../icons.js';
import {edgesOf, numberOf, shownState} from '../state.js';
import {tableButton} from '../table_dialog.js';
import {count, counted, firstLine, visibleLine} from '../text.js';
import {emptyState} from '../virtual_list.js';

/** @typedef {import('../state.js').Task} Task */

const mostNodes = 500;
const nodeWidth = 190;
const nodeHeight = 52;
const gapX = 56;
const gapY = 14;
const margin = 20;

/** @type {import('../app.js').ViewFactory} */
export const graphView = (app, main, firstRoute) => {
  let focus = firstRoute.params.focus ?? '';
  /** @type {import('../graph_layout.js').Layout} */
  let layout = {places: new Map(), edges: [], layers: 0, rows: 0};
  let drawn = '';
  const field = h('input', {type: 'search', 'data-filter': true, placeholder: 'Focus on a task', 'aria-label': 'Focus on a task', autocomplete: 'off'});
  field.addEventListener('change', () => setFocus(/^\d+$/.test(field.value.trim()) ? `task-${field.value.trim()}` : field.value.trim()));
  const all = button('Show all', {class: 'quiet', on: {click: () => setFocus('')}});
  const word = h('span', {class: 'dim', role: 'status'});
  const edges = s('svg', {class: 'edges', 'aria-hidden': 'true'});
  const nodes = h('div', {class: 'nodes', role: 'list', 'aria-label': 'Tasks'});
  const place = h('div', {class: 'graph-place'}, edges, nodes);
  const empty = h('div', {class: 'empty-place'});
  const scroller = h('div', {class: 'scroller graph', tabindex: '0', role: 'region', 'aria-label': 'Graph'}, place, empty);
  fill(main, [h('div', {class: 'filters'}, field, all, word, h('span', {class: 'grow'}),
      tableButton('Arrows between tasks', ['From', 'To', 'Kind'], () => layout.edges.map((edge) => [edge.from, edge.to, edge.kind === 'after' ? 'comes after' : 'restarted as']))),
    scroller, h('div', {class: 'legend'}, h('span', {class: 'legend-item'}, h('i', {class: 'edge-sample'}), 'comes after'),
        h('span', {class: 'legend-item'}, h('i', {class: 'edge-sample is-restart'}), 'restarted as'))]);

  const setFocus = (/** @type {string} */ id) => app.go('graph', {focus: id}, {replace: true});

  // The newest tasks that have arrows, as many as fit.
  const choose = () => {
    const everything = edgesOf(app.state.tasks.values());
    const wanted = everything.filter((edge) => app.state.tasks.has(edge.from) && app.state.tasks.has(edge.to));
    const joined = new Set(wanted.flatMap((edge) => [edge.from, edge.to]));
    const near = focus === '' ? joined : relatives(focus, wanted);
    const ids = app.state.newestFirst.filter((task) => near.has(task.id)).map((task) => task.id);
    const chosen = ids.slice(0, mostNodes);
    return {ids: chosen.reverse(), more: ids.length - chosen.length, edges: wanted};
  };

  const x = (/** @type {number} */ layer) => margin + layer * (nodeWidth + gapX);
  const y = (/** @type {number} */ row) => margin + row * (nodeHeight + gapY);

  function drawEdges() {
    set(edges, {width: String(x(layout.layers)), height: String(y(layout.rows) + margin)});
    place.style.width = `${x(layout.layers)}px`;
    place.style.height = `${y(layout.rows) + margin}px`;
    fill(edges, layout.edges.map((edge) => {
      const [from, to] = [layout.places.get(edge.from), layout.places.get(edge.to)];
      if (!from || !to) return null;
      const [x1, y1, x2, y2] = [x(from.layer) + nodeWidth, y(from.row) + nodeHeight / 2, x(to.layer), y(to.row) + nodeHeight / 2];
      const bend = Math.max(20, (x2 - x1) / 2);
      const isBad = ['failed', 'cancelled'].includes(app.state.tasks.get(edge.from)?.state ?? '') && app.state.tasks.get(edge.to)?.error?.reason === 'dependency';
      return s('path', {class: `edge is-${edge.kind}${isBad ? ' is-bad' : ''}`, 'data-edge': `${edge.from} ${edge.to}`,
        d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 2} ${y2}m-6 -4l6 4l-6 4`});
    }));
  }

  /** @param {import('../graph_layout.js').Place} item */
  const makeNode = (item) => {
    const link = h('a', {class: 'node-link', href: `#/tasks/${item.id}`});
    const aim = button('', {class: 'icon-button aim', 'aria-label': `Focus ${item.id}`, title: 'Show only what it hangs together with', on: {click: () => setFocus(item.id)}}, icon('search'));
    const node = h('div', {role: 'listitem', class: 'node', 'data-task': item.id}, link, aim);
    node.addEventListener('keydown', (event) => arrow(event, item.id));
    return node;
  };

  /** @param {HTMLElement} node @param {import('../graph_layout.js').Place} item */
  const showNode = (node, item) => {
    const task = app.state.tasks.get(item.id);
    node.style.transform = `translate(${x(item.layer)}px, ${y(item.row)}px)`;
    if (!task) return;
    const state = shownState(task);
    const wanted = `${state} ${task.error?.reason} ${task.id === focus}`;
    set(node, {'data-state': task.state, 'data-layer': String(item.layer), class: `node is-${state}${task.error?.reason === 'dependency' ? ' is-dependency' : ''}${task.id === focus ? ' is-focus' : ''}`});
    if (node.dataset.is === wanted) return;
    node.dataset.is = wanted;
    const link = /** @type {Element} */ (node.firstElementChild);
    fill(link, [h('span', {class: 'node-top'}, h('span', {class: `state is-${state}`}, icon(state), h('span', {}, task.error?.reason === 'dependency' ? 'dependency' : state)), h('span', {class: 'mono'}, task.id)),
      h('span', {class: 'node-name'}, firstLine(task.prompt, 60))]);
  };

  const directions = /** @type {Record<string, 'left' | 'right' | 'up' | 'down'>} */ ({ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down',
    h: 'left', l: 'right', k: 'up', j: 'down'});
  const arrow = (/** @type {KeyboardEvent} */ event, /** @type {string} */ id) => {
    const direction = event.ctrlKey || event.altKey || event.metaKey ? undefined : directions[event.key];
    if (!direction) return;
    event.preventDefault();
    event.stopPropagation();
    focusNode(neighbour(layout, id, direction));
  };
  const focusNode = (/** @type {string | null | undefined} */ id) => {
    const node = id ? /** @type {HTMLElement | null} */ (nodes.querySelector(`[data-task="${CSS.escape(id)}"] a`)) : null;
    node?.focus();
    node?.scrollIntoView({block: 'nearest', inline: 'nearest'});
  };

  function update() {
    if (!app.state.isComplete) app.loader.more();
    const {ids, more, edges: wanted} = choose();
    const shape = JSON.stringify([ids, wanted]);
    if (shape !== drawn) {
      drawn = shape;
      layout = layOut(ids, wanted.filter((edge) => layoutHas(ids, edge)));
    }
    drawEdges();
    // By age, so that what has the focus is never moved.
    keyed(nodes, [...layout.places.values()].sort((a, b) => numberOf(a.id) - numberOf(b.id)), (item) => item.id, makeNode, showNode);
    if (document.activeElement !== field) field.value = focus;
    set(all, {hidden: focus === ''});
    setText(word, ids.length === 0 ? '' : `${counted(ids.length, 'task')}, ${counted(layout.edges.length, 'arrow')}${more > 0 ? `, ${count(more)} more are not shown` : ''}`);
    const isEmpty = ids.length === 0 && app.state.isComplete;
    const said = !isEmpty ? '' : focus === '' ? 'none' : `no ${focus}`;
    set(place, {hidden: isEmpty});
    if (empty.dataset.word === said) return;
    empty.dataset.word = said;
    fill(empty, said === '' ? [] : focus === '' ? [emptyState('No task hangs together with another', 'Arrows come from ', h('code', {}, 'task submit --after ID'), ' and from restarts.')]
      : [emptyState(`There is no ${visibleLine(focus)} here`, button('Show all', {class: 'link', on: {click: () => setFocus('')}}))]);
  }

  return {
    update,
    route: (route) => {
      focus = route.params.focus ?? '';
      update();
    },
    keys: {j: () => focusNode([...layout.places.keys()][0]), ArrowDown: () => focusNode([...layout.places.keys()][0]), ArrowRight: () => focusNode([...layout.places.keys()][0])},
  };
};

/** @param {string[]} ids @param {import('../graph_layout.js').Edge} edge */
const layoutHas = (ids, edge) => ids.includes(edge.from) && ids.includes(edge.to);
