// The loads of queue_rate.cpp on graphile-worker and pg-boss, by their public interfaces. Prints a JSON line.
//
//   node peers.mjs FOLDER URL graphile|pgboss setup
//   node peers.mjs FOLDER URL graphile|pgboss submit COUNT BATCH
//   node peers.mjs FOLDER URL graphile|pgboss drain COUNT BATCH WORKERS
//   node peers.mjs FOLDER URL graphile|pgboss latency COUNT
//
// FOLDER has their node_modules. A worker is a process. With a batch of 1 it has one job at a time; with more it is set up as
// its authors advise for many small jobs. No job does anything.

import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [folder, url, system, load, ...numbers] = process.argv.slice(2);
const [count = 0, batch = 1, workers = 1] = numbers.map(Number);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const job = { text: 'x'.repeat(200) };
const times = (many, make) => Array.from({ length: many }, (_, i) => make(i));

async function importPeer(name) {
  return import(pathToFileURL(require.resolve(name)));
}

// Each system: setup(), adder() -> {one, many, close}, taker() -> {idle, takeAll}, waiter(started) -> {add, close}.
const systems = {
  async graphile() {
    const { Logger, makeWorkerUtils, run, runMigrations, runOnce } = await importPeer('graphile-worker');
    const many = { concurrentJobs: 24, maxPoolSize: 10, localQueue: { size: batch }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
    const settings = batch > 1 ? many : { concurrentJobs: 1, maxPoolSize: 3 };
    const preset = { worker: { connectionString: url, logger: new Logger(() => () => {}), ...settings } };
    const common = work => ({ preset, taskList: { work }, noHandleSignals: true });
    return {
      setup: () => runMigrations({ preset }),
      async adder() {
        const utils = await makeWorkerUtils({ preset });
        return {
          one: () => utils.addJob('work', job),
          many: n => utils.addJobs(times(n, () => ({ identifier: 'work', payload: job }))),
          close: () => utils.release(),
        };
      },
      async taker() {
        const takeAll = () => runOnce(common(async () => {}));
        await takeAll();
        const begin = performance.now();
        await takeAll();  // what a start costs that finds nothing: taken off
        return { idle: performance.now() - begin, takeAll };
      },
      async waiter(started) {
        const runner = await run(common(async () => started()));
        const utils = await makeWorkerUtils({ preset });
        return { add: () => utils.addJob('work', job), close: async () => { await runner.stop(); await utils.release(); } };
      },
    };
  },

  async pgboss() {
    const { PgBoss } = await importPeer('pg-boss');
    const open = async (more = {}) => {
      const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, max: 3, ...more });
      boss.on('error', error => { console.error(error); process.exit(1); });
      await boss.start();
      return boss;
    };
    const close = boss => boss.stop({ graceful: false });
    return {
      async setup() {
        const boss = await open();
        await boss.createQueue('work');
        await boss.createQueue('woken', { notify: true });
        await close(boss);
      },
      async adder() {
        const boss = await open();
        return {
          one: () => boss.send('work', job),
          many: n => boss.insert('work', times(n, () => ({ data: job }))),
          close: () => close(boss),
        };
      },
      async taker() {
        const boss = await open();
        const takeAll = async () => {
          for (let jobs; (jobs = await boss.fetch('work', { batchSize: batch })).length > 0;) {
            await boss.complete('work', jobs.map(one => one.id));
          }
        };
        await takeAll();
        return { idle: 0, takeAll };
      },
      async waiter(started) {
        const boss = await open({ useListenNotify: true, max: 5 });
        await boss.work('woken', async () => started());
        return { add: () => boss.send('woken', job), close: () => close(boss) };
      },
    };
  },
};

const loads = {
  async setup(peer) {
    await peer.setup();
    return {};
  },

  async submit(peer) {
    const queue = await peer.adder();
    await queue.one();  // connected
    const begin = performance.now();
    for (let done = 0; done < count; done += batch) await (batch > 1 ? queue.many(batch) : queue.one());
    const rate = count * 1000 / (performance.now() - begin);
    await queue.close();
    return { rate };
  },

  async drain(peer) {
    const children = times(workers, () => fork(process.argv[1], [folder, url, system, 'take', '0', String(batch)]));
    const heard = () => Promise.all(children.map(child => new Promise(resolve => child.once('message', resolve))));
    const idle = Math.max(...await heard());
    const queue = await peer.adder();
    for (let left = count; left > 0; left -= 5000) await queue.many(Math.min(left, 5000));
    await queue.close();
    const ended = heard();
    const begin = performance.now();
    for (const child of children) child.send('go');
    await ended;
    return { rate: count * 1000 / (performance.now() - begin - idle) };
  },

  async take(peer) {
    const taker = await peer.taker();
    const told = new Promise(resolve => process.once('message', resolve));
    process.send(taker.idle);
    await told;
    await taker.takeAll();
    await new Promise(resolve => process.send('ended', resolve));
    return {};
  },

  async latency(peer) {
    let started;
    const queue = await peer.waiter(() => started(performance.now()));
    await pause(1000);
    const seen = [];
    for (let i = 0; i < count; ++i) {
      const start = new Promise(resolve => { started = resolve; });
      const begin = performance.now();
      await queue.add();
      seen.push(await start - begin);
      await pause(1 + 0.7 * (i % 5));
    }
    await queue.close();
    seen.sort((a, b) => a - b);
    return { p50_ms: seen[Math.floor(count / 2)], p99_ms: seen[Math.floor(count * 0.99)] };
  },
};

const seen = await loads[load](await systems[system]());
if (load !== 'take') console.log(JSON.stringify({ system, load, ...seen }));
process.exit(0);
