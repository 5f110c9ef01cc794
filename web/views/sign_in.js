// The way in, for those who have no token here.

import {fill, h, set} from '../dom.js';
import {icon} from '../icons.js';
import {loginCode} from '../router.js';

/** @type {import('../app.js').ViewFactory} */
export const signInView = (app, main) => {
  const field = h('input', {id: 'login', type: 'text', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off',
    'aria-describedby': 'login-problem'});
  const problem = h('p', {id: 'login-problem', class: 'problem', role: 'alert'});
  const submit = h('button', {type: 'submit', class: 'primary wide'}, 'Sign in');
  const form = h('form', {class: 'sign-in-form', novalidate: true}, h('label', {for: 'login'}, 'Login link or code'), field, submit, problem);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (submit.getAttribute('aria-busy') === 'true') return;
    const code = loginCode(field.value);
    if (code === null) {
      app.shell.loginError = 'This is no login link and no code of 22 characters.';
      return update();
    }
    set(submit, {'aria-busy': 'true'});
    field.value = '';
    await app.shell.login(code);
    set(submit, {'aria-busy': null});
  });
  const update = () => {
    const text = app.shell.loginError;
    if (problem.dataset.text === text) return;
    problem.dataset.text = text;
    fill(problem, text === '' ? [] : [icon('warning'), h('span', {}, text)]);
  };
  fill(main, [h('div', {class: 'sign-in'},
      h('h2', {}, 'Sign in to this daemon'),
      h('p', {}, 'In a terminal, in the project, run'),
      h('pre', {class: 'command'}, h('code', {}, 'duet-rpc dashboard')),
      h('p', {class: 'dim'}, 'It opens this page signed in, or prints a link that is good once, within 5 minutes. Paste it here:'),
      form)]);
  field.focus();
  return {update};
};
