// Addresses of views: `#/tasks?state=failed`, `#/tasks/task-7`. Pure.

export const views = /** @type {const} */ (['tasks', 'timeline', 'graph', 'events', 'rules', 'servers', 'health']);

/** @typedef {typeof views[number]} ViewName */
/** @typedef {{view: ViewName | 'task', id: string, params: Record<string, string>}} Route */

/** What is no address of ours leads to the tasks. @param {string} hash @returns {Route} */
export function parseRoute(hash) {
  const [path = '', query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const [, view = '', id = ''] = path.split('/').map(decoded);
  /** @type {Record<string, string>} */
  const params = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (value !== '' && name !== '__proto__') params[name] = value;
  }
  if (view === 'tasks' && id !== '') return {view: 'task', id, params};
  const known = views.find((name) => name === view);
  return {view: known ?? 'tasks', id: '', params: known ? params : {}};
}

/** @param {string} view @param {Record<string, string | undefined>} [params] @param {string} [id] */
export function formatRoute(view, params = {}, id = '') {
  const query = new URLSearchParams();
  for (const name of Object.keys(params).sort()) {
    const value = params[name];
    if (value !== undefined && value !== '') query.set(name, value);
  }
  const text = query.toString().replace(/%2C/g, ',');
  const path = view === 'task' ? `#/tasks/${encodeURIComponent(id)}` : `#/${view}`;
  return text === '' ? path : `${path}?${text}`;
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A login code out of a link, or as it is; null if it can be none. @param {string} text */
export function loginCode(text) {
  const trimmed = text.trim();
  const code = /#login=([^&\s]*)/.exec(trimmed)?.[1] ?? trimmed;
  return /^[A-Za-z0-9_-]{22}$/.test(code) ? code : null;
}
