// Runs a test file with the system's Node if that is new enough, else with the one that package.json brings:
//
//   node launch.js 22.19 conformance.test.js
//
// Exit 77, which ctest shows as skipped, if there is neither, or if a package is not installed.

'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const notRun = 77;
const [wanted, file, ...packages] = process.argv.slice(2);

function isEnough(version) {
  const numbers = (text) => text.replace(/^v/, '').split('.').map(Number);
  const [major, minor = 0] = numbers(version);
  const [wantedMajor, wantedMinor = 0] = numbers(wanted);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

const modules = process.env.NODE_PATH;
const candidates = [process.execPath, path.join(modules, `node-linux-${process.arch}`, 'bin', 'node')];
const node = candidates.find((program) => {
  const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return status === 0 && isEnough(stdout.trim());
});
const missing = packages.filter((name) => !fs.existsSync(path.join(modules, name, 'package.json')));
if (!node || missing.length > 0) {
  console.log(`NOT RUN: ${file}: ${node ? `not installed: ${missing.join(', ')}` : `no Node ${wanted} or later`}`);
  process.exit(notRun);
}
const { status } = spawnSync(node, ['--test', path.join(__dirname, file)], { stdio: 'inherit' });
process.exit(status ?? 1);
