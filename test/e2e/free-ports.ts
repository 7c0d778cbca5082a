import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Below the range of outgoing ports, so that a port stays free while its node is down. */
const [LOWEST, HIGHEST] = [11_000, 31_000];
/** One file for each taken port, with the process's id. No other test gets the port of a node that is down. */
const TAKEN_DIR = join(tmpdir(), 'remora-test-ports');

/** Ports that are free now. Each is given out once in the life of this process, and to no other living process. */
export async function freePorts(host: string, count: number): Promise<readonly number[]> {
  const found: number[] = [];
  for (let tries = 0; found.length < count; tries++) {
    if (tries > 1_000) throw new Error('found no free ports');
    const port = randomInt(LOWEST, HIGHEST);
    if (take(port) && (await isFree(host, port))) found.push(port);
  }
  return found;
}

/** False if another process, or this one, has taken it. */
function take(port: number): boolean {
  const path = join(TAKEN_DIR, String(port));
  mkdirSync(TAKEN_DIR, { recursive: true });
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    if (!isHeld(path)) rmSync(path, { force: true }); // Free for the next process that draws it.
    return false;
  }
}

function isHeld(path: string): boolean {
  try {
    process.kill(Number(readFileSync(path, 'utf8')), 0);
    return true;
  } catch {
    return false;
  }
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
