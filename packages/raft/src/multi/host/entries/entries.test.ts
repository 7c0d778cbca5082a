// Entries that leave memory: what the host does about them, on a virtual clock.
import { afterEach, describe, expect, test } from 'vitest';
import { HostBed } from '../../../../test/support/host/host-bed.ts';
import { ENTRY_MEMORY_BYTES } from '../../../core/log.ts';
import { type CachedLog, EntryCache } from './entry-cache.ts';

const GROUP = 2;
const OTHER = 3;
const NODES = [1, 2, 3];

let bed: HostBed | undefined;

function three(options: ConstructorParameters<typeof HostBed>[0]['options'] = {}): HostBed {
  const made = new HostBed({ seed: 1, options: { entryCacheBytes: 1, ...options } });
  for (const id of NODES) made.start(id);
  made.addGroup(GROUP, NODES);
  bed = made;
  return made;
}

afterEach(() => {
  expect(bed?.fatal() ?? []).toEqual([]);
  bed = undefined;
});

async function propose(b: HostBed, leader: number, count: number): Promise<void> {
  const before = b.counter(leader, GROUP).history.length;
  for (let i = 0; i < count; i++) b.group(leader, GROUP).propose(Buffer.from(`${before + i};`));
  await b.until('it is applied', () => b.counter(leader, GROUP).history.length === before + count);
}

async function caughtUp(b: HostBed, id: number): Promise<void> {
  const leader = await b.leader(GROUP);
  const { history } = b.counter(leader, GROUP);
  await b.until(`node ${id} has everything`, () => b.counter(id, GROUP).history.length === history.length);
  expect(b.counter(id, GROUP).history).toEqual(history);
}

function follower(leader: number, which = 0): number {
  return NODES.filter((id) => id !== leader)[which] ?? 0;
}

describe('entries that left memory', () => {
  test('reach a follower that was away, without a snapshot', async () => {
    const b = three({ maxEntryBytesPerMessage: 1000 });
    const leader = await b.leader(GROUP);
    const away = follower(leader);
    await b.crash(away);
    for (let i = 0; i < 10; i++) await propose(b, leader, 50);
    await b.run(100);
    expect(b.node(leader).host.stats().entryCacheBytes).toBe(0);
    b.start(away);
    await caughtUp(b, away);
    const stats = b.node(leader).host.stats();
    expect(stats.snapshotsSent).toBe(0);
    expect(stats.entriesReadBack).toBeGreaterThanOrEqual(400);
    expect(stats.entryReads).toBeGreaterThan(5);
  });

  test('are applied after a restart that found none of them in memory', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    await propose(b, leader, 300);
    const id = follower(leader);
    await caughtUp(b, id);
    await b.run(1000);
    await b.crash(id);
    b.node(id).log.recentMax = 0;
    b.start(id);
    expect(b.counter(id, GROUP).history).toEqual([]);
    await caughtUp(b, id);
    expect(b.node(id).host.stats().entriesReadBack).toBeGreaterThanOrEqual(300);
  });

  test('keep nobody waiting who does not need them: other groups, and other followers, go on', async () => {
    const b = three({ entryCacheBytes: 30_000 }); // room for some 150, so that fresh ones are applied from memory
    b.addGroup(OTHER, NODES);
    const leader = await b.leader(GROUP);
    await b.leader(OTHER);
    await b.run(500);
    const [slow, fast] = [follower(leader), follower(leader, 1)];
    await b.crash(slow);
    for (let i = 0; i < 8; i++) await propose(b, leader, 50);
    await b.until('the other follower has it', () => b.counter(fast, GROUP).history.length === 400);
    await b.leader(OTHER);
    await b.run(500);
    for (const id of NODES) b.node(id).log.readMs = 60_000;
    b.start(slow);
    await b.until('a read is under way', () => b.node(leader).host.stats().entryReads > 0);
    await b.write(OTHER, 'meanwhile');
    await propose(b, leader, 10);
    await b.until('the other follower has it', () => b.counter(fast, GROUP).history.length === 410);
    expect(b.counter(slow, GROUP).history.length).toBeLessThan(400);
  });

  test('and cannot be read stop the node', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    await b.crash(follower(leader));
    await propose(b, leader, 100);
    b.node(leader).log.readFailure = new Error('the log is damaged');
    b.start(follower(leader));
    await b.until('it is said', () => b.node(leader).fatal.length > 0);
    expect(b.node(leader).fatal).toEqual([b.node(leader).log.readFailure]);
    bed = undefined;
  });
});

describe('a log that cannot keep up', () => {
  test('has proposals refused, until it can again', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    b.node(leader).log.full = true;
    expect(b.group(leader, GROUP).propose(Buffer.from('x'))).toEqual({ refused: 'queueFull' });
    expect(b.group(follower(leader), GROUP).propose(Buffer.from('x'))).toEqual({ refused: 'notLeader' });
    b.node(leader).log.full = false;
    await propose(b, leader, 1);
    expect(b.node(leader).host.stats().logFull).toBe(1);
  });

  test('has appends of the leader dropped, which come again, and keeps its leader', async () => {
    const b = three();
    const leader = await b.leader(GROUP);
    await propose(b, leader, 1);
    const id = follower(leader);
    await caughtUp(b, id);
    b.node(id).log.full = true;
    const { term } = b.group(id, GROUP);
    await propose(b, leader, 50);
    await b.run(3000);
    expect(b.counter(id, GROUP).history).toHaveLength(1);
    expect(b.node(id).host.stats().logFull).toBeGreaterThan(0);
    b.node(id).log.full = false;
    await caughtUp(b, id);
    expect(b.group(id, GROUP).term).toBe(term);
  });
});

/** A log that only counts: each entry takes `size` bytes. */
class CountedLog implements CachedLog {
  entryWindowStart = 0;
  lastIndex = 0;
  stable = Number.POSITIVE_INFINITY;
  readonly #size: number;

  constructor(size: number) {
    this.#size = size;
  }

  get entryMemoryBytes(): number {
    return (this.lastIndex - this.entryWindowStart) * this.#size;
  }

  evictTo(index: number): void {
    this.entryWindowStart = Math.max(this.entryWindowStart, Math.min(index, this.stable, this.lastIndex));
  }
}

describe('the cache of entries', () => {
  const MIB = 2 ** 20;

  test('lets the oldest go first, over all groups, down to its limit', () => {
    const cache = new EntryCache(10 * MIB);
    const logs = Array.from({ length: 20 }, () => new CountedLog(MIB));
    const shares = logs.map((log) => cache.join(log));
    for (const [i, log] of logs.entries()) {
      log.lastIndex = 1;
      shares[i]?.update();
    }
    expect(logs.map((log) => log.lastIndex - log.entryWindowStart)).toEqual([
      ...Array(10).fill(0),
      ...Array(10).fill(1),
    ]);
    expect([cache.bytes, cache.evictedBytes]).toEqual([10 * MIB, 10 * MIB]);
  });

  test("takes a busy group's own old entries, not those that another has just got", () => {
    const cache = new EntryCache(10 * MIB);
    const [busy, other] = [new CountedLog(1024), new CountedLog(1024)];
    const [busyShare, otherShare] = [cache.join(busy), cache.join(other)];
    for (let i = 0; i < 20_000; i++) {
      busy.lastIndex++;
      busyShare.update();
    }
    other.lastIndex = 100;
    otherShare.update();
    for (let i = 0; i < 1000; i++) {
      busy.lastIndex++;
      busyShare.update();
    }
    expect(other.entryWindowStart).toBe(0);
    expect(cache.bytes).toBeLessThanOrEqual(10 * MIB);
    expect(cache.bytes).toBeGreaterThan(9 * MIB);
  });

  test('keeps what a slow group has just appended, and lets go of what it had for long', () => {
    const cache = new EntryCache(10 * MIB);
    const [busy, slow] = [new CountedLog(1024), new CountedLog(1024)];
    const [busyShare, slowShare] = [cache.join(busy), cache.join(slow)];
    for (let i = 0; i < 40_000; i++) {
      busy.lastIndex++;
      busyShare.update();
      if (i % 1000 !== 0) continue;
      slow.lastIndex++;
      slowShare.update();
      expect(slow.entryWindowStart).toBeLessThan(slow.lastIndex);
    }
    expect(slow.entryWindowStart).toBeGreaterThan(20);
  });

  test('is passed only by what must stay, and comes down once it may go', () => {
    const cache = new EntryCache(MIB);
    const log = new CountedLog(1024);
    log.stable = 0;
    const share = cache.join(log);
    for (let i = 0; i < 3000; i++) {
      log.lastIndex++;
      share.update();
    }
    expect(cache.bytes).toBe(3000 * 1024);
    log.stable = 2500;
    share.update();
    expect(cache.bytes).toBeLessThanOrEqual(MIB);
    log.stable = 3000;
  });

  test('remembers no more than what is in memory, however often logs are cut by their checkpoints', () => {
    const cache = new EntryCache(100 * MIB);
    const idle = new CountedLog(10);
    idle.lastIndex = 1;
    cache.join(idle);
    const log = new CountedLog(ENTRY_MEMORY_BYTES);
    const share = cache.join(log);
    for (let i = 0; i < 2_000_000; i += 200) {
      log.lastIndex += 200;
      share.update();
      log.evictTo(log.lastIndex - 100);
      share.update();
    }
    expect(cache.extentCount).toBeLessThan(3000);
  });

  test('gives back what a group had that is gone', () => {
    const cache = new EntryCache(MIB);
    const log = new CountedLog(1024);
    const share = cache.join(log);
    log.lastIndex = 100;
    share.update();
    share.leave();
    share.update();
    expect(cache.bytes).toBe(0);
  });
});
