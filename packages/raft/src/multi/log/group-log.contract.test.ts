// One suite for everything that implements GroupLog (ports.ts, L1-L3).
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeDisk, SeededRandom, silentLogger } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { readAll } from '../../../test/support/log-kit.ts';
import { ENTRY_OVERHEAD_BYTES } from '../../core/log.ts';
import type { Entry } from '../../core/types.ts';
import { MemoryGroupLog } from '../../testing/memory-group-log.ts';
import type { GroupAppend, GroupLog } from '../ports.ts';
import { openGroupLog } from './group-log.ts';

interface Bench {
  readonly log: GroupLog;
  /** Closes the log and opens it again, as a restarted process would. */
  reopen(): Promise<Bench>;
  dispose(): Promise<void>;
}

function memoryBench(log: MemoryGroupLog): Bench {
  return { log, reopen: async () => memoryBench(log.reopen()), dispose: async () => {} };
}

async function diskBench(disk: SimDisk | ReturnType<typeof nodeDisk>, dispose: () => Promise<void>): Promise<Bench> {
  const log = await openGroupLog({
    disk,
    dir: 'log',
    options: { segmentBytes: 8192 },
    logger: silentLogger,
    onFailure: (error) => {
      throw error;
    },
  });
  return {
    log,
    reopen: async () => {
      await log.close();
      return diskBench(disk, dispose);
    },
    dispose: async () => {
      await log.close();
      await dispose();
    },
  };
}

async function nodeBench(syncInPlace: boolean): Promise<Bench> {
  const root = await mkdtemp(join(tmpdir(), 'group-log-'));
  return diskBench(nodeDisk(root, { syncInPlace }), () => rm(root, { recursive: true, force: true }));
}

const factories: { readonly name: string; readonly create: () => Promise<Bench> }[] = [
  { name: 'MemoryGroupLog', create: async () => memoryBench(new MemoryGroupLog()) },
  {
    name: 'the disk log over SimDisk',
    create: () => diskBench(new SimDisk({ random: new SeededRandom(1) }), async () => {}),
  },
  { name: 'the disk log over nodeDisk, in the thread pool', create: () => nodeBench(false) },
  { name: 'the disk log over nodeDisk, in place', create: () => nodeBench(true) },
];

function entries(first: number, count: number, term = 1, size = 10): Entry[] {
  return Array.from({ length: count }, (_, i) => ({
    index: first + i,
    term,
    type: (first + i) % 5 === 0 ? 'conf' : 'normal',
    data: Buffer.alloc(size, `${term}:${first + i};`),
  }));
}

function append(log: GroupLog, ...batch: GroupAppend[]): Promise<void> {
  return new Promise((resolve) => log.append(batch, resolve));
}

describe.each(factories)('$name', ({ create }) => {
  let bench: Bench | undefined;
  afterEach(async () => {
    await bench?.dispose();
    bench = undefined;
  });
  async function opened(): Promise<GroupLog> {
    bench = await create();
    return bench.log;
  }
  async function reopened(): Promise<GroupLog> {
    bench = await bench?.reopen();
    if (bench === undefined) throw new Error('not opened');
    return bench.log;
  }

  it('begins empty', async () => {
    expect((await opened()).recovered().size).toBe(0);
    expect((await reopened()).recovered().size).toBe(0);
  });

  it('gives back entries of every size, hard states and types, for every group', async () => {
    const log = await opened();
    const hardState = { term: 3, vote: 2 ** 52, commit: 2 ** 40 };
    const sizes = [0, 1, 4095, 4096, 5000, 20_000, 3, 9_000].map((size, i) => ({
      index: i + 1,
      term: 2 + (i >> 1),
      type: 'normal' as const,
      data: Buffer.alloc(size, `x${i}`),
    }));
    await append(log, { groupId: 7, hardState, entries: sizes }, { groupId: 2 ** 50, entries: entries(1, 3) });
    await append(log, { groupId: 9, hardState: { term: 1, vote: 0, commit: 0 }, entries: [] });
    const recovered = (await reopened()).recovered();
    expect([...recovered.keys()].sort((a, b) => a - b)).toEqual([7, 9, 2 ** 50]);
    expect(recovered.get(7)).toMatchObject({
      hardState,
      start: { index: 0, term: 0 },
      outline: { terms: [2, 3, 4, 5].map((term, i) => ({ index: 1 + 2 * i, term })), confs: [], lastIndex: 8 },
      entries: sizes,
    });
    expect(recovered.get(9)).toMatchObject({ hardState: { term: 1, vote: 0, commit: 0 }, entries: [] });
    expect(recovered.get(2 ** 50)).toMatchObject({ entries: entries(1, 3) });
  });

  it('calls back in the order of the calls, never inside a call, also for empty batches (L1)', async () => {
    const log = await opened();
    const order: number[] = [];
    let inside = true;
    const all = Array.from({ length: 50 }, (_, i) => {
      const batch = i % 7 === 0 ? [] : [{ groupId: 100 + i, entries: entries(1, 1 + (i % 3)) }];
      return new Promise<void>((resolve) => {
        log.append(batch, () => {
          expect(inside).toBe(false);
          order.push(i);
          resolve();
        });
      });
    });
    inside = false;
    await Promise.all(all);
    expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });

  it('replaces the suffix from the first index of an append', async () => {
    const log = await opened();
    await append(log, { groupId: 1, entries: entries(1, 10, 1) });
    await append(log, { groupId: 1, entries: entries(4, 2, 2) });
    expect((await reopened()).recovered().get(1)?.entries).toEqual([...entries(1, 3, 1), ...entries(4, 2, 2)]);
  });

  it('restarts a group after a position, dropping what was before', async () => {
    const log = await opened();
    await append(log, { groupId: 1, entries: entries(1, 10, 1) });
    const restartAt = { index: 50, term: 4 };
    await append(log, { groupId: 1, restartAt, entries: entries(51, 2, 5) }, { groupId: 2, restartAt, entries: [] });
    const recovered = (await reopened()).recovered();
    expect(recovered.get(1)).toMatchObject({ start: restartAt, entries: entries(51, 2, 5) });
    expect(recovered.get(2)).toMatchObject({ start: restartAt, entries: [] });
  });

  it('forgets removed groups, and takes them in again later as new ones', async () => {
    const log = await opened();
    await append(log, { groupId: 1, entries: entries(1, 3) }, { groupId: 2, entries: entries(1, 3) });
    log.removeGroup(1);
    log.removeGroup(2);
    await append(log, { groupId: 2, entries: entries(1, 1, 9) });
    const again = await reopened();
    expect([...again.recovered().keys()]).toEqual([2]);
    expect(again.recovered().get(2)?.entries).toEqual(entries(1, 1, 9));
  });

  it('keeps what is above the compacted position, and names the start with its term', async () => {
    const log = await opened();
    await append(log, { groupId: 1, entries: entries(1, 10, 3) }, { groupId: 2, entries: entries(1, 2) });
    log.compact(1, { index: 6, term: 3 });
    log.compact(1, { index: 2, term: 3 });
    log.compact(77, { index: 2, term: 3 });
    await append(log, { groupId: 2, entries: entries(3, 1) });
    const again = await reopened();
    expect(again.recovered().get(1)).toMatchObject({ start: { index: 6, term: 3 }, entries: entries(7, 4, 3) });
    expect([...again.recovered().keys()]).toEqual([1, 2]);
    again.forgetRecovered();
    expect(again.recovered().size).toBe(0);
  });

  it('keeps a slow group whole while a busy one fills and compacts the log many times over', async () => {
    const log = await opened();
    const hardState = { term: 6, vote: 3, commit: 2 };
    await append(log, { groupId: 5, hardState, entries: entries(1, 3, 6) });
    await append(log, { groupId: 6, hardState, restartAt: { index: 9, term: 2 }, entries: [] });
    for (let i = 0; i < 60; i++) {
      await append(log, { groupId: 1, entries: entries(1 + i * 10, 10, 1, 200) });
      log.compact(1, { index: i * 10, term: 1 });
      if (i === 30) await append(log, { groupId: 5, entries: entries(3, 2, 7) });
    }
    const recovered = await readAll(await reopened());
    expect(recovered.get(5)).toMatchObject({
      hardState,
      start: { index: 0, term: 0 },
      entries: [...entries(1, 2, 6), ...entries(3, 2, 7)],
    });
    expect(recovered.get(6)).toMatchObject({ hardState, start: { index: 9, term: 2 }, entries: [] });
    expect(recovered.get(1)?.entries).toEqual(entries(591, 10, 1, 200));
  });

  const ALL = Number.POSITIVE_INFINITY;

  it('reads entries back by index, as many as fit, over segments and of the group that is asked for (L4)', async () => {
    const log = await opened();
    for (let i = 0; i < 40; i++) {
      await append(
        log,
        { groupId: 1, entries: entries(1 + 5 * i, 5, 1 + (i >> 3), 100) },
        { groupId: 2, entries: entries(1 + i, 1, 7, i % 10 === 0 ? 9000 : 20) },
      );
    }
    const all = Array.from({ length: 40 }, (_, i) => entries(1 + 5 * i, 5, 1 + (i >> 3), 100)).flat();
    const check = async (of: GroupLog): Promise<void> => {
      for (const [from, to] of [
        [1, 200],
        [1, 1],
        [7, 9],
        [40, 41],
        [77, 160],
        [200, 200],
      ] as const) {
        const found = await of.read({ groupId: 1, from, to, maxBytes: ALL });
        expect(found).toEqual(all.slice(from - 1, to));
      }
      const fits = await of.read({ groupId: 1, from: 11, to: 200, maxBytes: 7 * (100 + ENTRY_OVERHEAD_BYTES) });
      expect(fits).toEqual(all.slice(10, 17));
      expect(await of.read({ groupId: 2, from: 31, to: 40, maxBytes: 1 })).toEqual(entries(31, 1, 7, 9000));
      expect(await of.read({ groupId: 2, from: 41, to: 50, maxBytes: ALL })).toEqual([]);
      expect(await of.read({ groupId: 3, from: 1, to: 50, maxBytes: ALL })).toEqual([]);
    };
    await check(log);
    await check(await reopened());
  });

  it('reads what replaced entries, and nothing of what was compacted, dropped by a restart or removed', async () => {
    const log = await opened();
    await append(log, { groupId: 1, entries: entries(1, 20, 1) });
    // In one frame with what they replace, and in a later one.
    const one = append(log, { groupId: 1, entries: entries(15, 10, 2) });
    const two = append(log, { groupId: 1, entries: entries(12, 4, 3) });
    const three = append(log, { groupId: 1, entries: entries(14, 9, 4) });
    await Promise.all([one, two, three]);
    await append(log, { groupId: 1, entries: entries(20, 2, 5) });
    const now = [...entries(1, 11, 1), ...entries(12, 2, 3), ...entries(14, 6, 4), ...entries(20, 2, 5)];
    const check = async (of: GroupLog): Promise<void> => {
      for (let from = 1; from <= 21; from++) {
        expect(await of.read({ groupId: 1, from, to: 30, maxBytes: ALL })).toEqual(now.slice(from - 1));
      }
    };
    await check(log);
    const again = await reopened();
    await check(again);
    again.compact(1, { index: 13, term: 3 });
    await append(again, { groupId: 2, entries: entries(1, 1) });
    expect(await again.read({ groupId: 1, from: 13, to: 30, maxBytes: ALL })).toEqual([]);
    expect(await again.read({ groupId: 1, from: 14, to: 30, maxBytes: ALL })).toEqual(now.slice(13));
    await append(again, { groupId: 1, restartAt: { index: 15, term: 9 }, entries: entries(16, 1, 9) });
    expect(await again.read({ groupId: 1, from: 14, to: 30, maxBytes: ALL })).toEqual([]);
    expect(await again.read({ groupId: 1, from: 16, to: 30, maxBytes: ALL })).toEqual(entries(16, 1, 9));
    again.removeGroup(1);
    await append(again, { groupId: 2, entries: entries(2, 1) });
    expect(await again.read({ groupId: 1, from: 16, to: 30, maxBytes: ALL })).toEqual([]);
  });

  it('reads a slow group while its entries are moved and their segments taken away', async () => {
    const log = await opened();
    const slow = entries(1, 30, 6, 50);
    await append(log, { groupId: 5, entries: slow });
    let reading = true;
    let reads = 0;
    const reader = (async () => {
      for (let from = 1; reading; from = (from % 30) + 1) {
        const found = await log.read({ groupId: 5, from, to: 30, maxBytes: ALL });
        expect(found.length).toBeGreaterThan(0);
        expect(found).toEqual(slow.slice(from - 1, from - 1 + found.length));
        reads++;
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    })();
    for (let i = 0; i < 60; i++) {
      await append(log, { groupId: 1, entries: entries(1 + i * 10, 10, 1, 200) });
      log.compact(1, { index: i * 10, term: 1 });
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    reading = false;
    await reader;
    expect(reads).toBeGreaterThan(10);
    expect(await log.read({ groupId: 5, from: 1, to: 30, maxBytes: ALL })).toEqual(slow);
  });

  it('finishes reads that are under way when it is closed', async () => {
    const log = await opened();
    await append(log, { groupId: 1, entries: entries(1, 20) });
    const reads = Promise.all([1, 5, 9].map((from) => log.read({ groupId: 1, from, to: 20, maxBytes: ALL })));
    await reopened();
    expect((await reads).map((found) => found.length)).toEqual([20, 16, 12]);
  });

  it('reclaims space while it is never at rest', async () => {
    const log = await opened();
    if (log instanceof MemoryGroupLog) return;
    await new Promise<void>((resolve) => {
      let next = 1;
      const more = (): void => {
        if (next > 1500) return resolve();
        const index = next++;
        log.compact(1, { index: Math.max(0, index - 4), term: 1 });
        log.append([{ groupId: 1, entries: entries(index, 1, 1, 500) }], more);
      };
      for (let i = 0; i < 3; i++) more();
    });
    expect(log.stats().segments).toBeLessThan(40); // of about 100
  });

  it('finishes what is under way when it is closed', async () => {
    const log = await opened();
    let called = 0;
    for (let i = 1; i <= 20; i++) {
      log.append([{ groupId: 1, entries: entries(i, 1) }], () => {
        called++;
      });
    }
    const again = await reopened();
    expect(called).toBe(20);
    expect(again.recovered().get(1)?.entries).toEqual(entries(1, 20));
    expect(log.stats().appends).toBe(20);
  });
});
