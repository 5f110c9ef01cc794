// Where the page begins.

import {App} from './app.js';
import {storedToken} from './session.js';

const app = new App();
if (!app.shell.takeLogin()) app.start(storedToken());
