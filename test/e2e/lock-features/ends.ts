/** What happens to a lock when its holder's process ends: killed, killed with a journal, stopped. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from 'remora';
import { expect } from 'vitest';
import { type Courses, SURVIVING_TTL_MS, type World, waiters } from './course.ts';

const HOLDER = fileURLToPath(new URL('../lock-holder.mjs', import.meta.url));
/** Longer than the test. */
const LONG_TTL_MS = 600_000;

export const ENDS: Courses = {
  async *'the server frees what a process held that died'(world) {
    const { client, name } = world;
    const holder = await startHolder(world, SURVIVING_TTL_MS);
    const { version } = holder;
    const waiting = client.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'held';
    expect(await client.locks.check([{ name, version }])).toEqual([true]);
    holder.child.kill('SIGKILL');
    yield 'waiting';
    const lock = await waiting;
    expect(lock.version).toBeGreaterThan(version);
    await lock.release();
  },

  async *'a process that is told to stop gives back what it holds'(world) {
    const { client, name } = world;
    const { child, version } = await startHolder(world, LONG_TTL_MS);
    yield 'held';
    expect(await client.locks.check([{ name, version }])).toEqual([true]);
    const waiting = client.lock(name).acquire();
    await waiters(world, name, 1);
    yield 'waiting';
    child.kill('SIGTERM');
    await (await waiting).release();
  },

  async *'what a killed process held is given back by the next one, which finds its journal'(world) {
    const { client, endpoints, name } = world;
    const journal = mkdtempSync(join(tmpdir(), 'remora-journal-'));
    try {
      const { child, version } = await startHolder(world, LONG_TTL_MS, journal);
      yield 'held';
      expect(await client.locks.check([{ name, version }])).toEqual([true]);
      const waiting = client.lock(name).acquire();
      await waiters(world, name, 1);
      yield 'waiting';
      child.kill('SIGKILL');
      await once(child, 'exit');
      await using _next = await connect({ endpoints, journal });
      await (await waiting).release();
    } finally {
      rmSync(journal, { recursive: true, force: true });
    }
  },
};

/** A process that holds the course's lock. It ends with these tests. */
async function startHolder({ endpoints, name }: World, ttlMs: number, ...journal: readonly string[]) {
  const child = spawn(process.execPath, [HOLDER, endpoints.join(','), name, String(ttlMs), ...journal]);
  process.once('exit', () => child.kill('SIGKILL'));
  const [version] = await once(child.stdout, 'data');
  return { child, version: Number(String(version)) };
}
