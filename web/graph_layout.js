// Places for tasks and the arrows between them, in layers from left to right: every arrow points right. Pure.

/** @typedef {{from: string, to: string, kind: 'after' | 'restartOf'}} Edge */
/** @typedef {{id: string, layer: number, row: number}} Place */
/** @typedef {{places: Map<string, Place>, edges: Edge[], layers: number, rows: number}} Layout */

const sweeps = 4;

/** Arrows that would lead back to where they come from are left out; those of `after` are kept first.
 *  @param {string[]} ids @param {Edge[]} edges */
function withoutCycles(ids, edges) {
  /** @type {Map<string, Edge[]>} */
  const out = new Map(ids.map((id) => [id, []]));
  const sorted = [...edges].sort((a, b) => (a.kind === b.kind ? 0 : a.kind === 'after' ? -1 : 1));
  const kept = [];
  for (const edge of sorted) {
    if (!out.has(edge.from) || !out.has(edge.to) || edge.from === edge.to) continue;
    if (edge.kind === 'restartOf' && reaches(out, edge.to, edge.from)) continue;
    out.get(edge.from)?.push(edge);
    kept.push(edge);
  }
  return {kept, out};
}

/** @param {Map<string, Edge[]>} out @param {string} from @param {string} to */
function reaches(out, from, to) {
  const seen = new Set([from]);
  const open = [from];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (id === to) return true;
    for (const edge of out.get(id) ?? []) {
      if (!seen.has(edge.to)) {
        seen.add(edge.to);
        open.push(edge.to);
      }
    }
  }
  return false;
}

/** The longest way from a task without arrows to it; a circle of `after`, which the daemon refuses, ends where it is found.
 *  @param {string[]} ids @param {Edge[]} edges @param {Map<string, Edge[]>} out */
function layersOf(ids, edges, out) {
  const layers = new Map(ids.map((id) => [id, 0]));
  const missing = new Map(ids.map((id) => [id, 0]));
  for (const edge of edges) missing.set(edge.to, (missing.get(edge.to) ?? 0) + 1);
  const ready = ids.filter((id) => missing.get(id) === 0);
  for (let i = 0; i < ready.length; ++i) {
    const id = /** @type {string} */ (ready[i]);
    for (const edge of out.get(id) ?? []) {
      layers.set(edge.to, Math.max(layers.get(edge.to) ?? 0, (layers.get(id) ?? 0) + 1));
      missing.set(edge.to, (missing.get(edge.to) ?? 0) - 1);
      if (missing.get(edge.to) === 0) ready.push(edge.to);
    }
  }
  return layers;
}

/** Groups of tasks that hang together, in the order of their first one. @param {string[]} ids @param {Edge[]} edges */
function components(ids, edges) {
  /** @type {Map<string, string[]>} */
  const near = new Map(ids.map((id) => [id, []]));
  for (const edge of edges) {
    near.get(edge.from)?.push(edge.to);
    near.get(edge.to)?.push(edge.from);
  }
  const seen = new Set();
  const groups = [];
  for (const id of ids) {
    if (seen.has(id)) continue;
    const group = [id];
    seen.add(id);
    for (let i = 0; i < group.length; ++i) {
      for (const other of near.get(/** @type {string} */ (group[i])) ?? []) {
        if (seen.has(other)) continue;
        seen.add(other);
        group.push(other);
      }
    }
    groups.push(group);
  }
  return groups;
}

/** Orders each layer by the mean place of its neighbours, to and fro. @param {string[][]} layers @param {Edge[]} edges */
function untangle(layers, edges) {
  /** @type {Map<string, number>} */
  const rows = new Map();
  const number = (/** @type {string[]} */ layer) => layer.forEach((id, row) => rows.set(id, row));
  layers.forEach(number);
  for (let sweep = 0; sweep < sweeps; ++sweep) {
    const isForward = sweep % 2 === 0;
    const order = isForward ? layers : [...layers].reverse();
    for (const layer of order) {
      const weights = new Map(layer.map((id) => [id, meanRow(id, edges, rows, isForward)]));
      layer.sort((a, b) => (weights.get(a) ?? 0) - (weights.get(b) ?? 0));
      number(layer);
    }
  }
}

/** @param {string} id @param {Edge[]} edges @param {Map<string, number>} rows @param {boolean} isForward */
function meanRow(id, edges, rows, isForward) {
  let sum = 0;
  let many = 0;
  for (const edge of edges) {
    const other = isForward ? (edge.to === id ? edge.from : null) : edge.from === id ? edge.to : null;
    if (other === null) continue;
    sum += rows.get(other) ?? 0;
    many += 1;
  }
  return many === 0 ? rows.get(id) ?? 0 : sum / many;
}

/** @param {string[]} ids @param {Edge[]} edges @returns {Layout} */
export function layOut(ids, edges) {
  const {kept, out} = withoutCycles(ids, edges);
  const layers = layersOf(ids, kept, out);
  const pointing = kept.filter((edge) => (layers.get(edge.from) ?? 0) < (layers.get(edge.to) ?? 0));
  /** @type {Map<string, Place>} */
  const places = new Map();
  let top = 0;
  let width = 0;
  for (const group of components(ids, pointing)) {
    const inGroup = new Set(group);
    /** @type {string[][]} */
    const columns = [];
    for (const id of group) (columns[layers.get(id) ?? 0] ??= []).push(id);
    for (let i = 0; i < columns.length; ++i) columns[i] ??= [];
    untangle(columns, pointing.filter((edge) => inGroup.has(edge.from)));
    const height = Math.max(...columns.map((column) => column.length));
    columns.forEach((column, layer) => {
      const shift = (height - column.length) / 2;
      column.forEach((id, row) => places.set(id, {id, layer, row: top + shift + row}));
    });
    top += height;
    width = Math.max(width, columns.length);
  }
  return {places, edges: pointing, layers: width, rows: top};
}

/** A task with all that it waits for and all that waits for it. @param {string} focus @param {Edge[]} edges */
export function relatives(focus, edges) {
  const found = new Set([focus]);
  for (const [here, there] of /** @type {const} */ ([['to', 'from'], ['from', 'to']])) {
    /** @type {Map<string, string[]>} */
    const next = new Map();
    for (const edge of edges) next.has(edge[here]) ? next.get(edge[here])?.push(edge[there]) : next.set(edge[here], [edge[there]]);
    const open = [focus];
    const seen = new Set(open);
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      for (const other of next.get(id) ?? []) {
        if (seen.has(other)) continue;
        seen.add(other);
        found.add(other);
        open.push(other);
      }
    }
  }
  return found;
}

/** The task where an arrow key leads from this one: along arrows to the sides, else within the layer.
 *  @param {Layout} layout @param {string} id @param {'left' | 'right' | 'up' | 'down'} direction */
export function neighbour(layout, id, direction) {
  const here = layout.places.get(id);
  if (!here) return null;
  if (direction === 'left' || direction === 'right') {
    const ends = layout.edges.filter((edge) => (direction === 'right' ? edge.from : edge.to) === id)
        .map((edge) => layout.places.get(direction === 'right' ? edge.to : edge.from))
        .filter((end) => end !== undefined);
    ends.sort((a, b) => Math.abs(a.row - here.row) - Math.abs(b.row - here.row));
    return ends[0]?.id ?? null;
  }
  const sign = direction === 'down' ? 1 : -1;
  const column = [...layout.places.values()].filter((one) => one.layer === here.layer && (one.row - here.row) * sign > 0);
  column.sort((a, b) => (a.row - b.row) * sign);
  return column[0]?.id ?? null;
}
