import { type ScanOptions, utf8 } from '@remora/base';
import { type LockCommand, type LockId, lockSpan, type Owner } from '@remora/lock';
import { type Command, LOCK_SPACE } from '@remora/protocol';
import { beforeEach, expect, test } from 'vitest';
import { DESCRIPTOR, StateBed } from '../../../test/support/state-bed.ts';

const LOCK: LockId = { namespace: 'n', name: utf8('plant') };
const LATER: LockId = { namespace: 'n', name: utf8('seed') };

let bed: StateBed;

beforeEach(async () => {
  bed = new StateBed();
  for (const [lease, lock] of [
    [1n, LOCK],
    [2n, LATER],
  ] as const) {
    const granted = await bed.ok({ type: 'leaseGrant', id: lease, ttlMs: 1_000, attributes: {} });
    if (granted.type !== 'leaseGrant') throw new Error('a grant is answered so');
    await bed.ok(acquire({ session: { lease, incarnation: granted.incarnation }, token: 't' }, lock));
    await bed.ok({ type: 'leaseRevoke', id: lease, incarnation: 0 });
  }
});

function acquire(owner: Owner, lock: LockId): Command {
  const limits = { wait: false, waitUntilMs: 0, deadlineMs: 9_000, depthMax: 1, data: utf8(''), delayMs: 500 };
  return { type: 'lock', command: { type: 'acquire', lock, owner, ...limits } };
}

const namesOf = (of: StateBed) => [...of.state.delays.all()].map(({ lock }) => Buffer.from(lock.name).toString());

/** Ends what is delayed, as its leader would. */
async function endAll(of: StateBed): Promise<void> {
  for (const { lock, owner, version } of [...of.state.delays.all()]) {
    const command: LockCommand = { type: 'endDelay', lock, owner, version };
    expect(await of.ok({ type: 'lock', command })).toMatchObject({ result: { type: 'released', version } });
  }
  expect(of.state.delays.size).toBe(0);
}

async function split(): Promise<StateBed> {
  const replicas = [{ nodeId: 1, replicaId: 31 }];
  const at = lockSpan(LATER).start;
  await bed.ok({ type: 'split', at, epoch: DESCRIPTOR.epoch, childId: 3, replicas, keys: 0, bytes: 0 });
  const [start] = bed.children;
  if (start === undefined) throw new Error('a split makes a child');
  const child = new StateBed({ engine: bed.engine, start });
  bed.block = { first: 100, count: 50 };
  child.block = { first: 200, count: 50 };
  bed.neighbours = [child];
  return child;
}

async function merge(child: StateBed): Promise<void> {
  const into = { targetId: bed.state.rangeId, round: bed.state.merging.round };
  const sealed = await child.ok({ type: 'seal', epoch: child.state.descriptor.epoch, into });
  if (sealed.type !== 'seal') throw new Error('a seal is answered so');
  const { epoch } = bed.state.descriptor;
  await bed.ok({ type: 'merge', epoch, round: bed.state.merging.round, source: sealed.sealed });
}

/** Counts the rows of locks that are read from now on. */
function lockReads(): { rows: number } {
  const { engine } = bed;
  const reads = { rows: 0 };
  const scan = engine.scanResident.bind(engine);
  engine.scanResident = (options: ScanOptions) => {
    const rows = scan(options);
    reads.rows += rows.filter(({ key }) => key[0] === LOCK_SPACE).length;
    return rows;
  };
  return reads;
}

test('a session that has ended leaves what is delayed to the range, and nothing to the lease', async () => {
  expect(bed.delayed.map(({ delayMs }) => delayMs)).toEqual([500, 500]);
  expect(namesOf(bed)).toEqual(['plant', 'seed']);
  expect([...bed.state.leases.allEnding()]).toEqual([]);
  await endAll(bed);
  expect(bed.engine.scanResident(lockSpan(LOCK))).toEqual([]);
});

test('what is delayed is found again after a crash', async () => {
  await bed.checkpoint();
  bed.crash();
  expect(namesOf(bed)).toEqual(['plant', 'seed']);
  await endAll(bed);
});

test('a split leaves to each range what is delayed in its own locks, and a merge brings it together', async () => {
  const child = await split();
  expect([namesOf(bed), namesOf(child)]).toEqual([['plant'], ['seed']]);
  bed.delayed.length = 0;
  await merge(child);
  expect([namesOf(bed), bed.delayed.length]).toEqual([['plant', 'seed'], 1]);
  await endAll(bed);
});

test('neither a split nor a merge reads locks to find what is delayed', async () => {
  const reads = lockReads();
  const child = await split();
  await merge(child);
  expect([namesOf(bed), reads.rows]).toEqual([['plant', 'seed'], 0]);
  await bed.checkpoint();
  bed.crash();
  expect(reads.rows).toBeGreaterThan(0);
});
