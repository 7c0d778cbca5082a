import type { Engine, Row } from '@remora/base';
import { FIRST_EPOCH, type RangeDescriptor, type ReplicaDescriptor } from '@remora/protocol';
import { type ConfChange, confChange, confOf, encodeConfChange, type GroupId } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { type Booted, boot, replicaOf } from '../test/support/booted-store.ts';
import { CrashWorld } from '../test/support/crash-world.ts';
import { metaAt, stateAt, streamOf } from '../test/support/install-data.ts';
import { DESCRIPTOR } from '../test/support/state-bed.ts';
import type { RangeReplica } from './range/range-replica.ts';
import { ENDED_MAX, HeldReplicas } from './replicas/held-replicas.ts';
import { rangeSpans } from './state/bounds.ts';
import { allLocalSpan, currentKey, heldKey, removalKey, stateKey } from './state/keys.ts';

const RANGE = DESCRIPTOR.rangeId;
const member = (replicaId: number, nodeId: number, type: ReplicaDescriptor['type'] = 'voter') => ({
  replicaId,
  nodeId,
  type,
});

/** The range of three, as it was created. */
const FIRST: RangeDescriptor = { ...DESCRIPTOR, replicas: [member(11, 1), member(12, 2), member(13, 3)] };

function later(confVersion: number, ...replicas: readonly ReplicaDescriptor[]): RangeDescriptor {
  return { ...DESCRIPTOR, epoch: { ...FIRST_EPOCH, confVersion }, replicas };
}

/** Rows of keys, more than a rebuild clears in one batch. */
const KEYS = 2_500;

async function fill(engine: Engine): Promise<void> {
  for (let i = 0; i < KEYS; i++) engine.put(currentKey(Buffer.from(`k${i}`)), Buffer.from('v'));
}

async function rowsLeft(engine: Engine): Promise<readonly Row[]> {
  const rows = await Promise.all(rangeSpans(RANGE, DESCRIPTOR).map((span) => engine.scan(span)));
  return rows.flat();
}

/** Applies changes that demote the replica here and remove it. */
function applyOwnRemoval(replica: RangeReplica): void {
  const steps: readonly (readonly [ConfChange, ReturnType<typeof confOf>])[] = [
    [confChange([{ type: 'addLearner', replica: 11 }]), confOf([12, 13], [11])],
    [confChange([{ type: 'remove', replica: 11 }]), confOf([12, 13])],
  ];
  for (const [i, [change, conf]] of steps.entries()) {
    void replica.apply([{ index: i + 1, term: 1, type: 'conf', data: encodeConfChange(change) }], conf);
  }
}

/** A node that holds replica 11 with its rows, durably. */
async function holding(world = new CrashWorld(1), logged = new Set<GroupId>()): Promise<Booted> {
  const booted = await boot(world, { logged });
  await booted.store.start();
  await booted.store.createReplica(FIRST, 11);
  await fill(booted.engine);
  await booted.checkpointer.run();
  return booted;
}

async function until(met: () => boolean): Promise<void> {
  for (let turns = 0; !met(); turns++) {
    if (turns > 100_000) throw new Error('it does not come to pass');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Nothing is left, and no marker says that somebody is at it. */
const isGone = ({ engine, host }: Booted) =>
  [stateKey(RANGE), removalKey(RANGE)].every((key) => engine.get(key) === undefined) && !host.logged.has(RANGE);

async function gone(booted: Booted): Promise<void> {
  await until(() => isGone(booted));
  expect(await rowsLeft(booted.engine)).toEqual([]);
  expect([...booted.store.replicas()]).toEqual([]);
  expect(booted.failures).toEqual([]);
}

describe('a replica that was removed from its range', () => {
  test('and has applied that is taken away: its group, its log, its rows and its place in memory', async () => {
    const booted = await holding();
    applyOwnRemoval(replicaOf(booted));
    expect(booted.store.heartbeat.report(true).ranges).toEqual([]);
    expect(booted.host.runs(RANGE)).toBe(false);
    await gone(booted);
    const local = booted.engine.scanResident(allLocalSpan()).map(({ key }) => Buffer.from(key));
    expect(local).toEqual([heldKey(RANGE)]);
    await booted.checkpointer.run(); // takes nothing of it up again
    expect(await rowsLeft(booted.engine)).toEqual([]);
  });

  test('is taken away when the master says so, from a later membership than its own', async () => {
    const booted = await holding();
    for (const word of [
      { rangeId: RANGE, replicaId: 11, confVersion: 1 },
      { rangeId: RANGE, replicaId: 12, confVersion: 9 },
      { rangeId: 7, replicaId: 11, confVersion: 9 },
    ]) {
      booted.store.removeReplica(word);
      expect(booted.store.heartbeat.report(true).ranges).toHaveLength(1);
    }
    booted.store.removeReplica({ rangeId: RANGE, replicaId: 11, confVersion: 2 });
    await gone(booted);
  });

  test('never comes back under its id, nor one before it, after a restart neither', async () => {
    const world = new CrashWorld(1);
    const booted = await holding(world);
    applyOwnRemoval(replicaOf(booted));
    await gone(booted);
    world.crash();
    const again = await boot(world);
    await again.store.start();
    for (const { store } of [booted, again]) {
      await expect(store.createReplica(FIRST, 11)).rejects.toThrow('replica 11 of range 2 was here before');
      await expect(store.createReplica(FIRST, 5)).rejects.toThrow('replica 5 of range 2 was here before');
    }
    expect(again.host.created).toEqual([]);
  });

  test('makes way for the next one of the range on its node, which begins with nothing of it', async () => {
    const world = new CrashWorld(1);
    const booted = await holding(world);
    const { store, host } = booted;
    const descriptor = later(5, member(12, 2), member(13, 3), member(17, 1, 'learner'));
    await expect(store.createReplica(descriptor, 17)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await gone(booted);
    await store.createReplica(descriptor, 17);
    expect(host.created.at(-1)).toMatchObject({ replicaId: 17, applied: { index: 0, term: 0 }, conf: confOf([]) });
    expect(await rowsLeft(booted.engine)).toHaveLength(1);
    store.stop();
    world.crash();
    const again = await boot(world, { logged: host.logged });
    await again.store.start();
    expect(again.host.created).toMatchObject([{ replicaId: 17, applied: { index: 0, term: 0 } }]);
  });

  test('stays when whoever asks for the next one knows less than it does', async () => {
    const { store } = await holding();
    await expect(store.createReplica(later(1, member(17, 1)), 17)).rejects.toThrow('a later membership');
    expect(store.heartbeat.report(true).ranges).toMatchObject([{ replicaId: 11 }]);
  });

  test('that is behind is still the old one after a restart, whatever its range calls its node by then', async () => {
    const world = new CrashWorld(1);
    const booted = await holding(world);
    const { state } = replicaOf(booted);
    // A checkpoint falls between the removal, the return of its node and the end of what runs.
    state.descriptor = later(5, member(12, 2), member(13, 3), member(17, 1, 'learner'));
    await booted.checkpointer.run();
    world.crash();
    const again = await boot(world, { logged: booted.host.logged });
    await again.store.start();
    expect(again.host.created).toEqual([]);
    await gone(again);
    await expect(again.store.createReplica(FIRST, 11)).rejects.toThrow('replica 11 of range 2 was here before');
  });

  test('is taken away after a crash amid that, however many ended here that came to be after it', async () => {
    const world = new CrashWorld(1);
    const { store, engine, host, checkpointer } = await holding(world);
    const held = new HeldReplicas(engine);
    for (let i = 0; i < ENDED_MAX; i++) held.ends(100 + i, 1_000 + i);
    await checkpointer.run();
    let recorded = false;
    host.removeGroup = async (_groupId, record) => {
      await record?.();
      recorded = true;
      await new Promise(() => {}); // the crash comes first
    };
    store.removeReplica({ rangeId: RANGE, replicaId: 11, confVersion: 9 });
    await until(() => recorded);
    world.crash();
    const again = await boot(world, { logged: host.logged });
    await again.store.start();
    expect(again.host.created).toEqual([]);
    await gone(again);
    await expect(again.store.createReplica(FIRST, 11)).rejects.toThrow('replica 11 of range 2 was here before');
  });

  test('while it installs a snapshot is taken away behind that', async () => {
    const booted = await holding();
    const replica = replicaOf(booted);
    const receiver = replica.install(metaAt(20));
    await receiver.chunk(await streamOf([], 20));
    let installed = false;
    const finished = receiver.finish().then(() => {
      installed = true;
    });
    // As a host does: it ends the group once nothing is being installed in it.
    const { host } = booted;
    const remove = host.removeGroup.bind(host);
    host.removeGroup = async (groupId, recorded) => {
      await finished;
      await remove(groupId, recorded);
    };
    booted.store.removeReplica({ rangeId: RANGE, replicaId: 11, confVersion: 9 });
    expect(installed).toBe(false);
    await gone(booted);
    expect(installed).toBe(true);
  });
});

test('a crash at any step of a removal leaves the replica, or one that goes at the next start', async () => {
  const met = new Set<string>();
  for (let at = 1; ; at++) {
    const world = new CrashWorld(at);
    const logged = new Set<GroupId>();
    await holding(world, logged);
    world.crash();
    const booted = await boot(world, { logged, crashAtStep: at });
    let dead = false;
    const died = booted.crashed.then(() => {
      dead = true;
    });
    await Promise.race([died, booted.store.start()]);
    if (!dead) applyOwnRemoval(replicaOf(booted));
    await Promise.race([died, until(() => dead || isGone(booted))]);
    if (!dead) break;
    const where = `crash at step ${at}`;
    const loggedThen = logged.has(RANGE);
    const again = await boot(world, { logged });
    const ended = again.engine.get(heldKey(RANGE))?.at(-1) === 0xc3; // true in MessagePack
    const stated = again.engine.get(stateKey(RANGE)) !== undefined;
    met.add(`${ended ? 'ended' : 'runs'}, ${loggedThen ? 'log' : 'no log'}, ${stated ? 'rows' : 'no rows'}`);
    await again.store.start();
    expect(again.host.created.length, where).toBe(ended ? 0 : 1);
    if (!ended) {
      expect(loggedThen, where).toBe(true); // it lost nothing
      applyOwnRemoval(replicaOf(again));
    }
    await until(() => isGone(again));
    expect(await rowsLeft(again.engine), where).toEqual([]);
    expect(again.recovered.size, where).toBe(0);
    expect([...booted.failures, ...again.failures], where).toEqual([]);
  }
  expect([...met].sort()).toEqual([
    'ended, log, rows',
    'ended, no log, no rows',
    'ended, no log, rows',
    'runs, log, rows',
  ]);
});

describe('what the master is told', () => {
  test('is, once each time, that a replica hears nobody and asks whether it belongs', async () => {
    const { store } = await holding();
    const asks = () => store.heartbeat.report(true).ranges.map(({ silent }) => silent);
    expect(asks()).toEqual([false]);
    store.heartbeat.silent(RANGE);
    expect([asks(), asks()]).toEqual([[true], [false]]);
  });

  test('is how its orders came out, in the next report, also where nobody could carry them out', async () => {
    const { store } = await holding();
    const instruction = { type: 'demote', replicaId: 12 } as const;
    store.heartbeat.carryOut({ orderId: 7, rangeId: RANGE, confVersion: 1, instruction });
    store.heartbeat.carryOut({ orderId: 8, rangeId: 5, confVersion: 1, instruction });
    expect(store.heartbeat.report(true).results).toMatchObject([
      { orderId: 7, outcome: 'underWay', reason: 'this replica does not lead the range' },
      { orderId: 8, outcome: 'refused', reason: 'this node holds no replica of range 5' },
    ]);
    expect(store.heartbeat.report(true).results).toEqual([]);
  });
});

test('data of a version without held rows is taken up by its descriptor, and knows its replica from then on', async () => {
  const world = new CrashWorld(1);
  const { engine } = await world.boot();
  const { key, value } = stateAt(5);
  engine.put(key, value);
  await engine.checkpoint();
  world.crash();
  const booted = await boot(world);
  await booted.store.start();
  expect(booted.store.heartbeat.report(true).ranges).toMatchObject([{ replicaId: 1 }]);
  await booted.checkpointer.run();
  expect(booted.engine.get(heldKey(RANGE))).toBeDefined();
});

test('a replica that is to be created while another of the range is, is not told to be there when that one is', async () => {
  const { store } = await boot(new CrashWorld(1));
  await store.start();
  const [first, same, other] = [11, 11, 17].map((replicaId) => store.createReplica(FIRST, replicaId));
  await expect(other).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await Promise.all([first, same]);
  expect(replicaOf({ store }).group.replicaId).toBe(11);
});
