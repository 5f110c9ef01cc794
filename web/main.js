// Where the page begins.

import {App} from './app.js';

const app = new App();
if (!app.shell.takeLogin()) app.begin();
