// A project of its own for each test, with a door to it; its daemon ends with it.

'use strict';

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const program = process.env.DUET_RPC_PROGRAM;
assert.ok(program, 'DUET_RPC_PROGRAM names the program under test');

const patience = 90_000; // a busy machine needs many seconds to start a process

class Project {
  constructor() {
    this.place = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'duet-mcp-')));
    this.root = path.join(this.place, 'project');
    this.home = path.join(this.place, 'home');
    fs.mkdirSync(path.join(this.root, '.git'), { recursive: true });
    fs.mkdirSync(path.join(this.home, '.config', 'duet-rpc'), { recursive: true });
    this.setUser('default_agent = "shell"\n');
    this.env = { PATH: process.env.PATH, HOME: this.home, XDG_CONFIG_HOME: path.join(this.home, '.config'),
      XDG_STATE_HOME: path.join(this.home, '.local', 'state') };
  }

  /** The user's settings. */
  setUser(text) {
    fs.writeFileSync(path.join(this.home, '.config', 'duet-rpc', 'config.toml'), text, { mode: 0o600 });
  }

  /** What a command prints; it must succeed. */
  run(...words) {
    return execFileSync(program, words, { cwd: this.root, env: this.env, encoding: 'utf8' });
  }

  /** What a stdio transport of any SDK needs to start the door. */
  server(...words) {
    return { command: program, args: ['mcp', '--agents', 'shell', ...words], cwd: this.root, env: this.env, stderr: 'inherit' };
  }

  write(name, text) {
    const file = path.join(this.root, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    return file;
  }

  /** A task that reads from `gate` waits there until openGate(). */
  makeGate() {
    execFileSync('mkfifo', [path.join(this.root, 'gate')]);
  }

  /** Lets the task go on that waits at the gate, as soon as one does. */
  async openGate() {
    const flags = fs.constants.O_WRONLY | fs.constants.O_NONBLOCK;
    const handle = await eventually(() => {
      try {
        return { file: fs.openSync(path.join(this.root, 'gate'), flags) };
      } catch {
        return undefined; // nobody waits there yet
      }
    });
    fs.writeSync(handle.file, '\n');
    fs.closeSync(handle.file);
  }

  daemonPid() {
    try {
      return Number(fs.readFileSync(path.join(this.root, '.aiwg', 'daemon', 'daemon.pid'), 'utf8'));
    } catch {
      return 0;
    }
  }

  async killDaemon() {
    const pid = this.daemonPid();
    if (!pid) return;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      return;
    }
    await eventually(() => !isRunning(pid));
  }

  async cleanUp() {
    execFileSync(program, ['daemon', 'stop', '--force', '--if-running'], { cwd: this.root, env: this.env, stdio: 'ignore' });
    fs.rmSync(this.place, { recursive: true, force: true, maxRetries: 5 });
  }
}

function isRunning(pid) {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat[stat.lastIndexOf(')') + 2] !== 'Z';
  } catch {
    return false;
  }
}

/** The first true result of HAPPENED, which may be a promise. */
async function eventually(happened) {
  const deadline = Date.now() + patience;
  for (;;) {
    const result = await happened();
    if (result) return result;
    assert.ok(Date.now() < deadline, `in time: ${happened}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Runs BODY with a project. */
function withProject(body) {
  return async () => {
    const project = new Project();
    try {
      await body(project);
    } finally {
      await project.cleanUp();
    }
  };
}

module.exports = { Project, eventually, isRunning, patience, program, withProject };
