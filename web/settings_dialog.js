// What a person may choose: colours, keys, notifications.

import {daemonNow} from './daemon_clock.js';
import {button, fill, h, set} from './dom.js';
import {makeDialog, openDialog} from './feedback.js';
import {openKeys} from './keys.js';
import {notificationsAreOn, switchNotifications} from './notifications.js';
import {applyTheme, prefer, preference} from './preferences.js';
import {relative, moment, visibleLine} from './text.js';

/** A switch with its name. @param {string} name @param {boolean} isOn @param {(isOn: boolean) => Promise<boolean> | boolean} change */
export function switchControl(name, isOn, change) {
  const control = button('', {role: 'switch', class: 'switch', 'aria-checked': String(isOn), 'aria-label': name}, h('span', {class: 'thumb'}));
  control.addEventListener('click', async () => {
    const now = await change(control.getAttribute('aria-checked') !== 'true');
    set(control, {'aria-checked': String(now)});
  });
  return control;
}

/** @param {import('./app.js').App} app */
export function openSettings(app) {
  const {dialog, body} = makeDialog('Settings', 'settings');
  const chosen = preference('theme', 'auto');
  const themes = ['auto', 'light', 'dark'].map((theme) => h('label', {class: 'choice'},
      h('input', {type: 'radio', name: 'theme', value: theme, checked: theme === chosen, on: {change: () => {
        prefer('theme', theme);
        applyTheme(theme);
      }}}), theme));
  const row = (/** @type {string} */ title, /** @type {string} */ text, /** @type {Node} */ control) =>
    h('div', {class: 'setting'}, h('div', {}, h('p', {class: 'setting-title'}, title), h('p', {class: 'dim'}, text)), control);
  const session = app.session;
  const until = session?.expiresAt ? `ends ${relative(moment(session.expiresAt), daemonNow())} if it is not used` : '';
  fill(body, [
    h('fieldset', {class: 'setting choices'}, h('legend', {class: 'setting-title'}, 'Colours'), ...themes),
    row('Keyboard shortcuts', 'Single keys such as j, k and n.', switchControl('Keyboard shortcuts', preference('keys', 'on') === 'on', (isOn) => {
      prefer('keys', isOn ? 'on' : 'off');
      return isOn;
    })),
    row('Notifications', 'Failed tasks and approvals, while this tab is hidden.',
        switchControl('Notifications', notificationsAreOn(), switchNotifications)),
    row('Keys', 'All of them.', button('Show keys', {on: {click: () => {
      dialog.close();
      openKeys();
    }}})),
    session ? h('p', {class: 'dim setting-foot'}, `Signed in as ${visibleLine(session.name)}, role ${session.role}. ${until}`) : null,
    session ? h('p', {class: 'dim setting-foot'}, `duet-rpc ${session.version} in ${visibleLine(session.project)}`) : null,
  ]);
  dialog.addEventListener('close', () => dialog.remove());
  openDialog(dialog);
}
