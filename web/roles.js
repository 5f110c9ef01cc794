// What each role may call, as docs/doors.md has it: what is not named here needs `own`. Pure.

const observe = ['ping', 'version', 'listMethods', 'describeMethods', 'rpc.discover', 'session.info', 'daemon.status',
  'daemon.metrics', 'agent.list', 'task.list', 'task.get', 'task.stats', 'task.wait', 'task.output', 'automation.status',
  'lsp.list', 'events.subscribe'];
const operate = ['task.cancel', 'task.restart', 'task.hold', 'task.release', 'queue.pause', 'queue.resume',
  'automation.approve', 'automation.deny', 'automation.enable', 'automation.disable'];

/** @param {string} role @param {string} method */
export function mayCall(role, method) {
  if (role === 'own') return true;
  if (observe.includes(method)) return role === 'observe' || role === 'operate';
  return role === 'operate' && operate.includes(method);
}
