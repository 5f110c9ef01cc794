// Every view by its name.

import {eventsView} from './events.js';
import {graphView} from './graph.js';
import {healthView} from './health.js';
import {rulesView} from './rules.js';
import {serversView} from './servers.js';
import {taskView} from './task.js';
import {tasksView} from './tasks.js';
import {timelineView} from './timeline.js';

/** @type {Record<string, import('../app.js').ViewFactory>} */
export const viewFactories = {tasks: tasksView, task: taskView, timeline: timelineView, graph: graphView, events: eventsView,
  rules: rulesView, servers: serversView, health: healthView};
