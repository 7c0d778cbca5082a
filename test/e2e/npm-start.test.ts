import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, test } from 'vitest';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Client, peer and HTTP ports follow one another. */
const HTTP_OFFSET = 2;

let dir: string;
let npm: ChildProcess;
let health: string;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'remora-npm-'));
  const [basePort = 0] = await freePorts('127.0.0.1', 1);
  health = `http://127.0.0.1:${basePort + HTTP_OFFSET}/health`;
  const options = ['--nodes', '1', '--data-dir', join(dir, 'data'), '--base-port', String(basePort)];
  // A group of its own, so that whatever a failed test leaves can be ended.
  npm = spawn('npm', ['start', '--', ...options], { cwd: ROOT, stdio: 'ignore', detached: true });
});
afterEach(() => {
  signalGroup('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

test('a signal to npm alone stops the cluster that it started', async () => {
  await eventually('the node answers', answers, { pollMs: 200 });
  npm.kill('SIGTERM');
  const isGone = async (): Promise<boolean> => !(await answers()) && !signalGroup(0);
  await eventually('nothing of it is left', isGone, { pollMs: 200 });
});

async function answers(): Promise<boolean> {
  return fetch(health, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** To npm and what it runs, the nodes not included; false when nothing of that is left. */
function signalGroup(signal: 'SIGKILL' | 0): boolean {
  if (npm.pid === undefined) return false;
  try {
    return process.kill(-npm.pid, signal);
  } catch {
    return false;
  }
}
