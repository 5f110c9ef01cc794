// The dialog that submits a task. It has one key, so however often it is sent, one task comes of it.

import {button, fill, h, set} from './dom.js';
import {Disconnected, RpcError} from './connection.js';
import {makeDialog, openDialog, showError} from './feedback.js';
import {secondsOf, visibleLine} from './text.js';

/** @typedef {import('./app.js').App} App */
/** @typedef {Record<string, string>} Draft what is typed, and the key */

const draftName = 'duet-rpc.draft';
/** @type {HTMLDialogElement | null} */
let opened = null;

// crypto.randomUUID is there in secure contexts only, and a daemon may be reached by another name than localhost.
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @returns {Draft} */
function loadDraft() {
  try {
    const draft = JSON.parse(sessionStorage.getItem(draftName) ?? '{}');
    return {...draft, key: draft.key ?? randomKey()};
  } catch {
    return {key: randomKey()};
  }
}

export function forgetDraft() {
  sessionStorage.removeItem(draftName);
}

/** For the next time the dialog is opened. One that the browser has no room for is in the dialog only. @param {Draft} draft */
function keepDraft(draft) {
  try {
    sessionStorage.setItem(draftName, JSON.stringify(draft));
  } catch {
    forgetDraft();
  }
}

/** The parameters, or a word about what is wrong. @param {Draft} draft */
export function paramsOf(draft) {
  const text = (/** @type {string} */ name) => (draft[name] ?? '').trim();
  if (text('prompt') === '') throw new Error('Say what the agent is to do.');
  if (text('agent') === '?') throw new Error('Choose an agent.');
  /** @type {Record<string, any>} */
  const params = {prompt: draft.prompt, key: draft.key};
  if (text('agent') !== '') params.agent = draft.agent;
  if (text('group') !== '') params.group = draft.group;
  for (const name of ['priority', 'retries']) {
    if (text(name) === '') continue;
    if (!/^-?\d+$/.test(text(name))) throw new Error(`${name} is a whole number.`);
    params[name] = Number(text(name));
  }
  if (text('limit') !== '') {
    const seconds = secondsOf(text('limit'));
    if (seconds === null || seconds <= 0) throw new Error('The time limit is a time such as 90s, 10m or 2h.');
    params.timeoutSeconds = seconds;
  }
  const after = text('after').split(/[\s,]+/).filter(Boolean).map((id) => (/^\d+$/.test(id) ? `task-${id}` : id));
  if (after.length > 0) params.after = after;
  return params;
}

/** @param {App} app */
export function openSubmit(app) {
  if (opened?.open) return;
  opened?.remove();
  const draft = loadDraft();
  const {dialog, body} = makeDialog('Submit a task', 'submit');
  opened = dialog;
  const keep = () => keepDraft(draft);
  const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {HTMLElement} */ control, hint = '') => {
    const input = /** @type {HTMLInputElement} */ (control);
    set(input, {id: `submit-${name}`, name, 'aria-describedby': hint === '' ? null : `submit-${name}-hint`});
    if (draft[name] !== undefined) input.value = /** @type {string} */ (draft[name]);
    input.addEventListener('input', () => {
      draft[name] = input.value;
      keep();
    });
    return h('div', {class: `field field-${name}`}, h('label', {for: `submit-${name}`}, label), input,
        hint === '' ? null : h('small', {id: `submit-${name}-hint`, class: 'dim'}, hint));
  };
  const prompt = h('textarea', {rows: '6', required: true, spellcheck: 'true'});
  const agent = h('select', {});
  const group = h('select', {});
  const errors = h('div', {class: 'notes'});
  const send = h('button', {type: 'submit', class: 'primary'}, 'Submit task');
  const form = h('form', {novalidate: true},
      field('prompt', 'Prompt', prompt), h('div', {class: 'field-grid'},
          field('agent', 'Agent', agent), field('group', 'Group', group),
          field('priority', 'Priority', h('input', {type: 'text', inputmode: 'numeric', placeholder: '0', autocomplete: 'off'}), 'higher runs first'),
          field('limit', 'Time limit', h('input', {type: 'text', placeholder: 'none', autocomplete: 'off'}), 'such as 90s, 10m, 2h'),
          field('retries', 'Retries', h('input', {type: 'text', inputmode: 'numeric', placeholder: '0', autocomplete: 'off'}), 'after a failure'),
          field('after', 'After', h('input', {type: 'text', placeholder: 'task-3, task-4', autocomplete: 'off'}), 'tasks that must have succeeded')),
      errors, h('footer', {class: 'dialog-foot'}, h('span', {class: 'dim grow hint'}, 'Ctrl+Enter submits, Esc keeps what you typed'),
          button('Clear', {class: 'quiet', on: {click: () => clear()}}), send));
  const clear = () => {
    forgetDraft();
    dialog.close();
    dialog.remove();
    openSubmit(app);
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit(app, dialog, form, errors, send, draft);
  });
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && event.ctrlKey) form.requestSubmit();
  });
  fill(body, [form]);
  fillChoices(app, agent, group, draft);
  openDialog(dialog);
  prompt.focus();
}

/** @param {App} app @param {HTMLSelectElement} agent @param {HTMLSelectElement} group @param {Draft} draft */
async function fillChoices(app, agent, group, draft) {
  const option = (/** @type {string} */ value, /** @type {string} */ text) => h('option', {value}, text);
  fill(group, [option('', 'of the agent'), ...(app.state.queue?.groups ?? []).map((/** @type {any} */ one) => option(one.name, visibleLine(one.name)))]);
  group.value = draft.group ?? '';
  fill(agent, [option('', 'default')]);
  const listed = await app.call('agent.list').catch(() => null);
  if (!listed) return;
  // A shell is asked for by name only: a prompt must not become a command by accident.
  const isSafe = listed.default && listed.default !== 'shell';
  const first = isSafe ? option('', `default (${visibleLine(listed.default)})`) : option('?', 'Choose an agent…');
  fill(agent, [first, ...listed.agents.map((/** @type {any} */ one) =>
    option(one.name, visibleLine(one.name) + (one.available ? '' : ' (not found)')))]);
  agent.value = draft.agent && [...agent.options].some((one) => one.value === draft.agent) ? draft.agent : first.value;
  draft.agent = agent.value;
}

/** @param {App} app @param {HTMLDialogElement} dialog @param {HTMLFormElement} form @param {HTMLElement} errors
 *  @param {HTMLButtonElement} send @param {Draft} draft */
async function submit(app, dialog, form, errors, send, draft) {
  if (send.getAttribute('aria-busy') === 'true') return;
  set(send, {'aria-busy': 'true'});
  fill(errors, []);
  const controls = /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll('input, textarea, select')]);
  controls.forEach((control) => (control.disabled = true));  // the key stands for these words until the answer is here
  try {
    const answer = await sendUntilAnswered(app, paramsOf(draft), errors);
    forgetDraft();
    dialog.close();
    dialog.remove();
    app.shell.tellSubmitted(answer.taskId);
  } catch (error) {
    fill(errors, []);
    showError(errors, error);
    // A key that belongs to another task can make none any more.
    if (error instanceof RpcError && error.data?.taskId) draft.key = randomKey();
    keepDraft(draft);
  } finally {
    set(send, {'aria-busy': null});
    controls.forEach((control) => (control.disabled = false));
  }
}

// The same key makes the same task, so what nobody answered is sent again.
/** @param {App} app @param {object} params @param {HTMLElement} errors @returns {Promise<{taskId: string}>} */
async function sendUntilAnswered(app, params, errors) {
  for (;;) {
    try {
      return await app.call('task.submit', params);
    } catch (error) {
      if (!(error instanceof Disconnected) || document.documentElement.dataset.connection === 'signed-out') throw error;
      fill(errors, [h('p', {class: 'note', role: 'status'}, 'The connection was lost. It is sent again, as the same task, as soon as the daemon is back.')]);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
