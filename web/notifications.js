// Notifications of the system: failed tasks and approvals while the tab is hidden, once each whatever the number of tabs.

import {preference, prefer} from './preferences.js';

export function notificationsAreOn() {
  return preference('notifications', 'off') === 'on' && 'Notification' in window && Notification.permission === 'granted';
}

/** Asks the browser if need be; the answer is whether they are on now. @param {boolean} isOn */
export async function switchNotifications(isOn) {
  if (!isOn || !('Notification' in window)) {
    prefer('notifications', 'off');
    return false;
  }
  const permission = await Notification.requestPermission();
  prefer('notifications', permission === 'granted' ? 'on' : 'off');
  return permission === 'granted';
}

const othersHear = 10000;  // milliseconds in which the other tabs hear of the same event, and see what is written down

/** The first tab that gets the event's lock tells of it. It keeps the lock until what it has written down is seen by all: tabs
 *  see each other's preferences some time later. @param {string} name @param {string} title @param {string} body
 *  @param {string} route */
export async function notifyOnce(name, title, body, route) {
  if (!document.hidden || !notificationsAreOn()) return;
  await navigator.locks.request(`duet-rpc.notify.${name}`, {ifAvailable: true}, async (lock) => {
    const told = preference('told', '').split(' ');
    if (!lock || told.includes(name)) return;
    prefer('told', [...told.slice(-200), name].join(' ').trim());
    const note = new Notification(title, {body, tag: name});
    note.onclick = () => {
      window.focus();
      location.hash = route;
    };
    await new Promise((resolve) => setTimeout(resolve, othersHear));
  });
}
