// The numbers behind a drawing, for those who cannot or do not want to look at it.

import {button, h, fill} from './dom.js';
import {makeDialog, openDialog} from './feedback.js';
import {icon} from './icons.js';
import {count} from './text.js';

const mostRows = 500;

/** @param {string} title @param {string[]} columns @param {() => (string | number)[][]} rowsOf */
export function tableButton(title, columns, rowsOf) {
  return button('Table', {class: 'small quiet', 'aria-label': `Table: ${title}`, on: {click: () => openTable(title, columns, rowsOf())}}, icon('table'), 'Table');
}

/** @param {string} title @param {string[]} columns @param {(string | number)[][]} rows */
function openTable(title, columns, rows) {
  const {dialog, body} = makeDialog(title, 'table');
  const table = h('table', {class: 'plain'}, h('thead', {}, h('tr', {}, ...columns.map((column) => h('th', {scope: 'col'}, column)))),
      h('tbody', {}, ...rows.slice(0, mostRows).map((row) => h('tr', {}, ...row.map((value) => h('td', {}, String(value)))))));
  fill(body, [h('div', {class: 'table-place', tabindex: '0', role: 'region', 'aria-label': title}, table),
    rows.length > mostRows && h('p', {class: 'dim'}, `${count(rows.length - mostRows)} more rows are not shown.`),
    rows.length === 0 && h('p', {class: 'dim'}, 'There is nothing to show.')]);
  dialog.addEventListener('close', () => dialog.remove());
  openDialog(dialog);
}
