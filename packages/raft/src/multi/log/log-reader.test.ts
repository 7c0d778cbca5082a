// Reading beside reclaiming (log-reader.ts, D1), what a read costs, and the limit of the queue (group-log.ts, W5).
import { type Disk, type DiskFile, equalBytes, SeededRandom, silentLogger } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../core/types.ts';
import type { GroupAppend, GroupLog } from '../ports.ts';
import { openGroupLog } from './group-log.ts';
import type { GroupLogOptions, GroupLogStats } from './group-log-options.ts';

const ALL = Number.POSITIVE_INFINITY;

/** A disk whose next read can be held up, and which says what became of file names and how much was read. */
class WatchedDisk {
  readonly #inner = new SimDisk({ random: new SeededRandom(5) });
  readonly gone: string[] = [];
  bytesRead = 0;
  hold: Promise<void> | undefined;

  get disk(): Disk {
    const inner = this.#inner;
    return {
      list: (dir) => inner.list(dir),
      makeDir: () => inner.makeDir(),
      open: async (path, options) => this.#watched(await inner.open(path, options)),
      rename: (change) => {
        this.gone.push(change.from);
        return inner.rename(change);
      },
      remove: (path) => {
        this.gone.push(path);
        return inner.remove(path);
      },
      syncDir: (dir) => inner.syncDir(dir),
    };
  }

  #watched(file: DiskFile): DiskFile {
    return {
      size: () => file.size(),
      read: async (position, length) => {
        const { hold } = this;
        this.hold = undefined;
        await hold;
        this.bytesRead += length;
        return file.read(position, length);
      },
      write: (position, chunks, done) => file.write(position, chunks, done),
      sync: (done) => file.sync(done),
      writeSynced: (position, chunks, done) => file.writeSynced(position, chunks, done),
      preallocate: (size) => file.preallocate(size),
      truncate: (size) => file.truncate(size),
      close: () => file.close(),
    };
  }
}

function open(disk: Disk, options: GroupLogOptions = {}): Promise<{ stats(): GroupLogStats } & GroupLog> {
  const onFailure = (error: Error): void => {
    throw error;
  };
  return openGroupLog({ disk, dir: 'log', options, logger: silentLogger, onFailure });
}

function entries(first: number, count: number, size = 200): Entry[] {
  return Array.from({ length: count }, (_, i) => ({
    index: first + i,
    term: 1,
    type: 'normal',
    data: Buffer.alloc(size, `${first + i};`),
  }));
}

function append(log: GroupLog, ...batch: GroupAppend[]): Promise<void> {
  return new Promise((resolve) => log.append(batch, resolve));
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}

describe('reading old entries', () => {
  it('keeps a segment whose entries have been moved until the read has ended (D1)', async () => {
    const watched = new WatchedDisk();
    const log = await open(watched.disk, { segmentBytes: 4096 });
    await append(log, { groupId: 5, entries: entries(1, 3) });
    const [head] = await watched.disk.list('log');
    let release: () => void = () => {};
    watched.hold = new Promise((resolve) => {
      release = resolve;
    });
    const reading = log.read({ groupId: 5, from: 1, to: 3, maxBytes: ALL });
    for (let i = 0; i < 40; i++) {
      await append(log, { groupId: 1, entries: entries(1 + 10 * i, 10) });
      log.compact(1, { index: 10 * i, term: 1 });
    }
    await settle();
    expect(log.stats().bytesMoved).toBeGreaterThan(0);
    expect(watched.gone).not.toContain(`log/${head}`);
    release();
    expect(await reading).toEqual(entries(1, 3));
    await append(log, { groupId: 1, entries: entries(401, 1) });
    await settle();
    expect(watched.gone).toContain(`log/${head}`);
    expect(await log.read({ groupId: 5, from: 1, to: 3, maxBytes: ALL })).toEqual(entries(1, 3));
    await log.close();
  });

  it('looks through a bounded part of the log, by an index that is small beside it (X4)', async () => {
    const watched = new WatchedDisk();
    const log = await open(watched.disk, { segmentBytes: 16 << 20 });
    const [groups, rounds, count] = [50, 100, 10];
    for (let i = 0; i < rounds; i++) {
      const batch = Array.from({ length: groups }, (_, g) => ({
        groupId: 10 + g,
        entries: entries(1 + i * count, count),
      }));
      await append(log, ...batch);
    }
    const { bytes, indexRuns } = log.stats();
    expect(bytes).toBeGreaterThan(9 << 20);
    expect(indexRuns).toBeLessThan(bytes / 1024);
    watched.bytesRead = 0;
    for (const from of [1, 333, 990]) {
      const found = await log.read({ groupId: 33, from, to: from, maxBytes: 1 });
      expect(found).toEqual(entries(from, 1));
    }
    expect(watched.bytesRead).toBeLessThan(3 * (1 << 20));
    await log.close();
  });
});

/** As `toEqual` says, which takes long for so many bytes. */
function sameEntries(a: readonly Entry[], b: readonly Entry[]): boolean {
  const same = (x: Entry, y: Entry | undefined) =>
    x.index === y?.index && x.term === y.term && equalBytes(x.data, y.data);
  return a.length === b.length && a.every((entry, i) => same(entry, b[i]));
}

describe('groups that lag together', () => {
  const GROUPS = Array.from({ length: 40 }, (_, g) => 10 + g);

  it('read the log about once, and not each for itself (D4)', async () => {
    const watched = new WatchedDisk();
    const log = await open(watched.disk, { readCacheBytes: 1 << 20 });
    const [last, size] = [120, 1_000];
    for (let i = 1; i <= last; i++) {
      await append(log, ...GROUPS.map((groupId) => ({ groupId, entries: entries(i, 1, size) })));
    }
    const { bytes } = log.stats();
    expect(bytes).toBeGreaterThan(4 << 20);
    watched.bytesRead = 0;
    const next = new Map(GROUPS.map((groupId) => [groupId, 1]));
    while (next.size > 0) {
      const reads = [...next].map(async ([groupId, from]) => {
        const found = await log.read({ groupId, from, to: last, maxBytes: 8_000 });
        expect(sameEntries(found, entries(from, found.length, size))).toBe(true);
        if (from + found.length > last) next.delete(groupId);
        else next.set(groupId, from + found.length);
      });
      await Promise.all(reads);
    }
    expect(watched.bytesRead).toBeLessThan(2 * bytes);
    await log.close();
  });

  it('go on after one of them met damage', async () => {
    const watched = new WatchedDisk();
    const log = await open(watched.disk);
    await append(log, ...GROUPS.map((groupId) => ({ groupId, entries: entries(1, 3) })));
    watched.hold = Promise.reject(new Error('the disk hiccuped'));
    const [first, ...others] = GROUPS.map((groupId) => log.read({ groupId, from: 1, to: 3, maxBytes: ALL }));
    await expect(first).rejects.toThrow('the disk hiccuped');
    for (const other of others) expect(await other).toEqual(entries(1, 3));
    await log.close();
  });
});

describe('the last entries after a start', () => {
  it('are as many as fit, the newest, and the others are there to be read', async () => {
    const { disk } = new WatchedDisk();
    const first = await open(disk, { segmentBytes: 8192 });
    for (let i = 0; i < 30; i++) {
      await append(first, { groupId: 1, entries: entries(1 + 10 * i, 10) }, { groupId: 2, entries: entries(1 + i, 1) });
    }
    await first.close();
    const log = await open(disk, { segmentBytes: 8192, recentBytes: 30 * 400 });
    const one = log.recovered().get(1);
    expect(one?.outline).toMatchObject({ lastIndex: 300, terms: [{ index: 1, term: 1 }] });
    expect(one?.entries.at(-1)?.index).toBe(300);
    expect(one?.entries.length).toBeGreaterThan(15);
    expect(one?.entries.length).toBeLessThan(50);
    const last = 300 - (one?.entries.length ?? 0);
    expect(await log.read({ groupId: 1, from: 1, to: last, maxBytes: ALL })).toEqual(entries(1, last));
    await log.close();
  });
});

describe('the queue of what waits to be written', () => {
  it('says that it is full above its limit, and takes everything nevertheless', async () => {
    const log = await open(new WatchedDisk().disk, { queueBytesMax: 10_000 });
    expect(log.full).toBe(false);
    const all = Array.from({ length: 100 }, (_, i) => append(log, { groupId: 1, entries: entries(1 + i, 1) }));
    expect(log.full).toBe(true);
    await Promise.all(all);
    expect(log.full).toBe(false);
    expect(await log.read({ groupId: 1, from: 1, to: 100, maxBytes: ALL })).toEqual(entries(1, 100));
    await log.close();
  });
});
