import { afterEach, describe, expect, test } from 'vitest';
import { type Counter, HostBed } from '../../../../test/support/host/host-bed.ts';
import type { HostOptions } from '../options.ts';

const OPTIONS = { tailEntries: 5, tailBytes: 1_000_000, snapshotHoldMs: 0, snapshotRetryMs: 100 };
const NODES = [1, 2, 3];

let bed: HostBed | undefined;
afterEach(() => {
  const fatal = bed?.fatal();
  bed = undefined;
  expect(fatal ?? []).toEqual([]);
});

interface Lag {
  readonly b: HostBed;
  readonly leader: number;
  readonly behind: number;
}

/** Groups 2 … led by one node, and a node that needs a snapshot of each. */
async function lagging(groups: readonly number[], options: Partial<HostOptions> = {}): Promise<Lag> {
  const b = new HostBed({ seed: 4, options: { ...OPTIONS, ...options } });
  bed = b;
  for (const id of NODES) b.start(id);
  for (const group of groups) b.addGroup(group, NODES);
  const leader = await b.leader(groups[0] ?? 0);
  for (const group of groups) {
    const other = await b.leader(group);
    if (other !== leader) b.group(other, group).transferLeader(group * 100 + leader);
    await b.until('one node leads all', () => b.leaderOf(group) === leader);
  }
  const behind = NODES.find((id) => id !== leader) ?? 0;
  b.network.partition(
    NODES.filter((id) => id !== behind),
    [behind],
  );
  for (const group of groups) {
    for (let i = 0; i < 30; i++) await b.write(group, `w${i}`);
    for (const id of NODES.filter((node) => node !== behind)) {
      b.group(id, group).checkpointed(b.counter(id, group).checkpoint());
    }
  }
  expect(groups.map((group) => b.leaderOf(group))).toEqual(groups.map(() => leader));
  return { b, leader, behind };
}

function caughtUp({ b, behind }: Lag, groups: readonly number[]): Promise<void> {
  return b.until('all is caught up', () => groups.every((group) => b.counter(behind, group).history.length === 30));
}

function gateOf(): { readonly gate: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { gate, open };
}

/** Counts the pictures taken of a state machine, and those that are let go. */
function countPictures(counter: Counter): { taken: number; released: number } {
  const pictures = { taken: 0, released: 0 };
  const snapshot = counter.snapshot.bind(counter);
  counter.snapshot = () => {
    pictures.taken++;
    const picture = snapshot();
    return { ...picture, release: () => void pictures.released++ };
  };
  return pictures;
}

describe('snapshots between hosts', () => {
  test('a link that breaks and comes back costs neither a new picture nor a new installation', async () => {
    const lag = await lagging([2]);
    const { b, leader, behind } = lag;
    b.counter(leader, 2).snapshotChunks = 40;
    const pictures = countPictures(b.counter(leader, 2));
    const failedBefore = b.node(leader).host.stats().snapshotsSendFailed;
    let breaks = 0;
    b.network.tapSnapshots(({ message }) => {
      if (message.type !== 'chunk' || message.number !== 10 * (breaks + 1) || breaks === 3) return 'pass';
      breaks++;
      return 'break';
    });
    b.network.heal();
    await caughtUp(lag, [2]);
    expect(breaks).toBe(3);
    expect(b.counter(behind, 2).installs).toBe(1);
    await b.until('the sender knows', () => b.node(leader).host.stats().snapshotsSent === 1);
    expect(pictures).toEqual({ taken: 1, released: 1 });
    expect(b.node(leader).host.stats()).toMatchObject({ snapshotsResumed: 3, snapshotsSendFailed: failedBefore });
    const { snapshotBytesSent } = b.node(leader).host.stats();
    expect(b.node(behind).host.stats().snapshotBytesReceived).toBe(snapshotBytesSent);
  });

  test('what is under way is counted until it ends', async () => {
    const lag = await lagging([2]);
    const { b, leader, behind } = lag;
    const { gate, open } = gateOf();
    b.counter(behind, 2).installGate = gate;
    b.network.heal();
    await b.until('it is installed', () => b.counter(behind, 2).installs === 1);
    expect(b.node(leader).host.inFlight()).toMatchObject({ snapshotsOut: 1, logHolds: 1 });
    expect(b.node(behind).host.inFlight()).toMatchObject({ snapshotsIn: 1, receiving: 1 });
    let read = false;
    b.group(leader, 2).readIndex(() => {
      read = true;
    });
    expect(b.node(leader).host.inFlight().reads).toBe(1);
    open();
    await caughtUp(lag, [2]);
    await b.until('it is read', () => read);
    const nothing = { reads: 0, snapshotsOut: 0, logHolds: 0, snapshotsIn: 0, receiving: 0, durableWaits: 0 };
    await b.until('all has ended', () => Object.values(b.node(leader).host.inFlight()).every((count) => count === 0));
    expect(b.node(leader).host.inFlight()).toEqual(nothing);
    expect(b.node(behind).host.inFlight()).toEqual(nothing);
  });

  test('a receiver with no place is asked again with the same picture, in turn (S3, J1)', async () => {
    const groups = [2, 3, 4, 5];
    const lag = await lagging(groups, { snapshotReceivesMax: 1, snapshotSendsMax: 2 });
    const { b, leader, behind } = lag;
    const { gate, open } = gateOf();
    const pictures = groups.map((group) => countPictures(b.counter(leader, group)));
    for (const group of groups) b.counter(behind, group).installGate = gate;
    const failedBefore = b.node(leader).host.stats().snapshotsSendFailed; // while it could not be reached
    b.network.heal();
    await b.until('it was put off', () => b.node(leader).host.stats().snapshotsPutOff > 5);
    const taken = pictures.reduce((sum, picture) => sum + picture.taken, 0);
    expect(taken).toBeLessThanOrEqual(1 + 2 + 1); // the one that is sent, those that wait, one that was let go
    open();
    await caughtUp(lag, groups);
    await b.until('all are let go', () => pictures.every((picture) => picture.taken === picture.released));
    expect(b.node(leader).host.stats()).toMatchObject({
      snapshotsSent: 4,
      snapshotsSendFailed: failedBefore,
    });
    expect(groups.map((group) => b.counter(behind, group).installs)).toEqual([1, 1, 1, 1]);
  });

  test('a picture that waits is let go when the leadership ends', async () => {
    const lag = await lagging([2, 3], { snapshotReceivesMax: 1 });
    const { b, leader, behind } = lag;
    const { gate, open } = gateOf();
    for (const group of [2, 3]) b.counter(behind, group).installGate = gate;
    const pictures = [2, 3].map((group) => countPictures(b.counter(leader, group)));
    b.network.heal();
    await b.until('one waits', () => b.node(leader).host.stats().snapshotsPutOff > 1);
    const waiting = b.counter(behind, 2).installs === 0 ? 2 : 3;
    await b.removeGroup(leader, waiting);
    expect(pictures[waiting - 2]).toEqual({ taken: 1, released: 1 });
    open();
  });

  test('an installation that shows no progress gives its place back, and still counts when it ends (R5)', async () => {
    const lag = await lagging([2, 3], { snapshotReceivesMax: 1, snapshotInstallTimeoutMs: 400 });
    const { b, leader, behind } = lag;
    const { gate, open } = gateOf();
    b.counter(behind, 2).installGate = gate;
    b.counter(behind, 3).installGate = gate;
    const failedBefore = b.node(leader).host.stats().snapshotsSendFailed;
    b.network.heal();
    await b.until('it fails towards the sender', () => b.node(leader).host.stats().snapshotsSendFailed > failedBefore);
    await b.until('the other one has its turn', () => [2, 3].every((group) => b.counter(behind, group).installs === 1));
    expect(b.node(behind).host.stats().snapshotsReceived).toBe(0);
    open();
    await caughtUp(lag, [2, 3]);
    expect(b.node(behind).host.stats().snapshotsReceived).toBe(2);
    expect([2, 3].map((group) => b.counter(behind, group).installs)).toEqual([1, 1]); // traps 9
  });

  test('an installation that shows progress is not cut, however long it takes (R5)', async () => {
    const lag = await lagging([2], { snapshotInstallTimeoutMs: 400 });
    const { b, leader, behind } = lag;
    const counter = b.counter(behind, 2);
    const install = counter.install.bind(counter);
    counter.install = () => {
      const inner = install();
      const finish = async (progress?: () => void) => {
        for (let step = 0; step < 20; step++) {
          await new Promise<void>((resolve) => b.clock.setTimer(300, resolve));
          progress?.();
        }
        await inner.finish();
      };
      return { chunk: (bytes) => inner.chunk(bytes), abort: (reason) => inner.abort(reason), finish };
    };
    const failedBefore = b.node(leader).host.stats().snapshotsSendFailed;
    b.network.heal();
    await caughtUp(lag, [2]);
    expect(b.node(leader).host.stats().snapshotsSendFailed).toBe(failedBefore);
    expect(counter.installs).toBe(1);
  });

  test('a chunk that the state machine never stores gives the place back (R5)', async () => {
    const groups = [2, 3];
    const lag = await lagging(groups, { snapshotReceivesMax: 1, snapshotIdleTimeoutMs: 300 });
    const { b, behind } = lag;
    let stuck: number | undefined; // the group whose snapshot comes first
    for (const group of groups) {
      const counter = b.counter(behind, group);
      const install = counter.install.bind(counter);
      counter.install = () => {
        stuck ??= group;
        return stuck === group ? { ...install(), chunk: () => new Promise(() => undefined) } : install();
      };
    }
    b.network.heal();
    await b.until('a snapshot has come', () => stuck !== undefined);
    await caughtUp(
      lag,
      groups.filter((group) => group !== stuck),
    );
    expect(b.node(behind).host.stats().snapshotsReceived).toBe(1);
    expect(b.counter(behind, stuck ?? 0).installs).toBe(1);
  });

  test('a state machine that gives no chunk fails the sending, and others have their turn (S4)', async () => {
    const lag = await lagging([2, 3], { snapshotSendsMax: 1, snapshotIdleTimeoutMs: 300 });
    const { b, leader } = lag;
    const counter = b.counter(leader, 2);
    const snapshot = counter.snapshot.bind(counter);
    counter.snapshot = () => ({ ...snapshot(), chunks: stuck() });
    const failedBefore = b.node(leader).host.stats().snapshotsSendFailed;
    b.network.heal();
    await caughtUp(lag, [3]);
    await b.until('it failed', () => b.node(leader).host.stats().snapshotsSendFailed > failedBefore);
  });

  test('a replica that is removed while a snapshot is installed in it is gone only when the state machine is left alone', async () => {
    const lag = await lagging([2]);
    const { b, behind } = lag;
    const { gate, open } = gateOf();
    const counter = b.counter(behind, 2);
    counter.installGate = gate;
    b.network.heal();
    await b.until('it is on its way', () => counter.installs === 1);
    await b.run(50);
    let removed = false;
    void b
      .node(behind)
      .host.removeGroup(2)
      .then(() => {
        removed = true;
      });
    b.node(behind).counters.delete(2);
    await b.run(100);
    expect({ removed, history: counter.history }).toEqual({ removed: false, history: [] });
    open();
    await b.until('it is removed', () => removed, 100);
    expect(counter.history).toHaveLength(30);
  });

  test('a replica that is removed between two chunks of a snapshot is gone when that was given up', async () => {
    const lag = await lagging([2]);
    const { b, behind } = lag;
    const { gate, open } = gateOf();
    const counter = b.counter(behind, 2);
    const install = counter.install.bind(counter);
    counter.install = () => ({ ...install(), chunk: () => gate });
    b.network.heal();
    await b.until('it is on its way', () => counter.installs === 1);
    await b.run(50);
    const aborts: number[] = [];
    void b
      .node(behind)
      .host.removeGroup(2)
      .then(() => aborts.push(counter.aborts));
    b.node(behind).counters.delete(2);
    await b.run(50);
    open();
    await b.until('it is removed', () => aborts.length > 0, 100);
    expect(aborts).toEqual([1]);
  });

  /** Milliseconds that a snapshot of 4 MiB takes, while a group of which the sender knows nothing is written to. */
  async function transferMs({ b, leader, behind }: Lag, writes: 'many' | 'none'): Promise<number> {
    const counter = b.counter(leader, 2);
    const snapshot = counter.snapshot.bind(counter);
    counter.snapshot = () => ({ ...snapshot(), chunks: padded(snapshot().chunks, 4 * 2 ** 20) });
    b.addGroup(9, [behind]);
    await b.leader(9);
    b.network.heal();
    await b.until('it is on its way', () => b.counter(behind, 2).installs === 1);
    const begunMs = b.clock.monotonicMs();
    await b.until('it is installed', () => {
      if (writes === 'many') b.group(behind, 9).propose(Buffer.from('more'));
      return b.counter(behind, 2).history.length === 30;
    });
    return b.clock.monotonicMs() - begunMs;
  }

  test('a receiver with other work takes a snapshot at the pace of its own limit, and sooner without (R6)', async () => {
    const limits = { snapshotBytesPerSecondMax: 32 * 2 ** 20, snapshotBytesPerSecondBusy: 4 * 2 ** 20 };
    expect(await transferMs(await lagging([2], limits), 'many')).toBeGreaterThan(950);
    expect(await transferMs(await lagging([2], limits), 'none')).toBeLessThan(400);
  });

  test('a snapshot that waits for its turn at a busy receiver ends at once when the replica is removed (R6)', async () => {
    const lag = await lagging([2], { snapshotBytesPerSecondBusy: 2 ** 20 });
    const { b, leader, behind } = lag;
    const counter = b.counter(leader, 2);
    const snapshot = counter.snapshot.bind(counter);
    counter.snapshot = () => ({ ...snapshot(), chunks: padded(snapshot().chunks, 2 ** 20) });
    b.network.heal();
    await b.until('a part is there', () => b.node(behind).host.stats().snapshotBytesReceived > 0);
    const receiving = b.counter(behind, 2);
    const askedMs = b.clock.monotonicMs();
    await b.removeGroup(behind, 2);
    expect(receiving.aborts).toBe(1);
    expect(b.clock.monotonicMs() - askedMs).toBeLessThan(20); // a grant takes 62 ms
    expect(b.node(behind).host.inFlight()).toMatchObject({ snapshotsIn: 0, receiving: 0 });
  });

  test('a node that stops while it sends and receives ends both at once', async () => {
    const lag = await lagging([2]);
    const { b, leader, behind } = lag;
    const { gate, open } = gateOf();
    const counter = b.counter(leader, 2);
    const snapshot = counter.snapshot.bind(counter);
    counter.snapshot = () => ({ ...snapshot(), chunks: held(gate) });
    const pictures = countPictures(counter);
    b.network.heal();
    await b.until('it is on its way', () => b.counter(behind, 2).installs === 1);
    let stopped = false;
    const stopping = b
      .node(leader)
      .host.stop()
      .then(() => {
        stopped = true;
      });
    await b.until('it stopped', () => stopped, 100);
    await stopping;
    expect(pictures).toEqual({ taken: 1, released: 1 });
    open();
  });
});

async function* stuck(): AsyncIterable<Uint8Array> {
  await new Promise(() => undefined);
}

async function* held(gate: Promise<void>): AsyncIterable<Uint8Array> {
  yield Buffer.from('{');
  await gate;
}

/** Behind the state comes what its reader passes over. */
async function* padded(chunks: AsyncIterable<Uint8Array>, bytes: number): AsyncIterable<Uint8Array> {
  yield* chunks;
  yield Buffer.alloc(bytes, ' ');
}
