import { nodeClock, SeededRandom, ServiceError } from '@remora/base';
import type { Query, WatchMessage } from '@remora/protocol';
import { confOf, MASTER_GROUP, type RecoveredGroup } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { type Booted, boot, replicaOf } from '../test/support/booted-store.ts';
import { CrashWorld } from '../test/support/crash-world.ts';
import { metaAt, pieces, someRows, stateAt, streamOf } from '../test/support/install-data.ts';
import { CONF, DESCRIPTOR, HISTORY, range } from '../test/support/state-bed.ts';
import type { RangeReplica } from './range/range-replica.ts';
import { currentKey, historyKey, parseHistoryKey } from './state/keys.ts';
import { encodeVersion } from './state/kv/record.ts';

const EPOCH = DESCRIPTOR.epoch;
const turn = (): Promise<void> => new Promise((resolve) => nodeClock().setImmediate(resolve));

/** What the log of a replica held that was checkpointed at index 5. */
const HELD: RecoveredGroup = {
  ...{ hardState: { term: 2, vote: 0, commit: 5 }, start: { index: 5, term: 2 }, entries: [] },
  outline: { lastIndex: 5, terms: [], confs: [], bytes: 0 },
};

/** The row of the key `k`, written at this revision. */
function keyAt(revision: number) {
  const version = {
    value: Buffer.from(`at ${revision}`),
    createRevision: 2,
    modRevision: revision,
    version: 1,
    lease: 0n,
  };
  return { key: currentKey(Buffer.from('k')), value: encodeVersion(version) };
}

async function started(): Promise<Booted & { readonly world: CrashWorld; readonly stream: Buffer }> {
  const world = new CrashWorld(1);
  const { engine } = await world.boot();
  for (const { key, value } of [keyAt(4), stateAt(5)]) engine.put(key, value);
  await engine.checkpoint();
  const booted = await boot(world);
  await booted.store.start();
  const rows = [...someRows(new SeededRandom(1), { small: 0, large: 8 }), keyAt(19)];
  const stream = await streamOf(
    rows.sort((a, b) => Buffer.compare(a.key, b.key)),
    20,
  );
  return { ...booted, world, stream };
}

/** Receives all of the stream; `finish` of the receiver is to follow. */
async function staged(replica: RangeReplica, stream: Buffer) {
  const receiver = replica.install(metaAt(20));
  for (const piece of pieces(stream, new SeededRandom(2))) await receiver.chunk(piece);
  return receiver;
}

/** What a serializable read of `k` says: its value at a revision, or the error's code. */
function read(replica: RangeReplica): Promise<string> {
  const query: Query = { type: 'range', op: range('k'), serializable: true };
  return new Promise((resolve) => {
    replica.requests.execute(
      {
        rangeId: 2,
        epoch: EPOCH,
        requestId: '',
        authRevision: 0,
        deadlineMs: 0,
        body: { kind: 'query', query, notBefore: 0 },
      },
      () => {},
      (error, reply) => {
        const kv = reply?.result.type === 'range' ? reply.result.kvs[0] : undefined;
        resolve(error === undefined ? `${Buffer.from(kv?.value ?? 'none')}, revision ${reply?.revision}` : error.code);
      },
    );
  });
}

describe('while a replica installs a snapshot', () => {
  test('a read gets the old state, then a refusal that may be retried, then the new state: never a mixture', async () => {
    const booted = await started();
    const replica = replicaOf(booted);
    const receiver = await staged(replica, booted.stream);
    const answers = [await read(replica)];
    let done = false;
    const finished = receiver.finish().then(() => {
      done = true;
    });
    while (!done) {
      answers.push(await read(replica));
      await turn();
    }
    await finished;
    answers.push(await read(replica));
    const seen = answers.filter((answer, i) => answer !== answers[i - 1]);
    expect(seen).toEqual(['at 4, revision 5', 'UNAVAILABLE', 'at 19, revision 20']);
    expect(new ServiceError('UNAVAILABLE', '').retry).toBe('sameRequest');
    expect(booted.world.failures).toEqual([]);
  });

  test('whoever waits for it sees each step of the installation', async () => {
    const booted = await started();
    const receiver = await staged(replicaOf(booted), booted.stream);
    let steps = 0;
    await receiver.finish(() => steps++);
    expect(steps).toBeGreaterThan(1);
  });

  test('a checkpoint passes it by, and what else is checkpointed is durable', async () => {
    const booted = await started();
    const { checkpointer, host } = booted;
    const replica = replicaOf(booted);
    const receiver = await staged(replica, booted.stream);
    let others = 0;
    checkpointer.add(() => () => {
      others += replica.replacing ? 1 : 0;
    });
    let done = false;
    const finished = receiver.finish().then(() => {
      done = true;
    });
    while (!done) {
      const before = host.checkpointed.length;
      const replacing = replica.replacing;
      await checkpointer.run();
      if (replacing && replica.replacing) expect(host.checkpointed.length).toBe(before);
      await turn();
    }
    await finished;
    expect(others).toBeGreaterThan(0);
    await checkpointer.run();
    expect(host.checkpointed.at(-1)).toEqual({ index: 20, term: 2 });
    expect(booted.world.failures).toEqual([]);
  });

  test('one that was not told yet that it leads no more ends its watches, and is led again only when told', async () => {
    const booted = await started();
    const replica = replicaOf(booted);
    const messages: WatchMessage[] = [];
    replica.roleChanged({ role: 'leader', term: 3, leader: 1 });
    await replica.apply([{ index: 6, term: 3, type: 'normal', data: Buffer.alloc(0) }], CONF);
    const watch = replica.watches.openStream({
      send: (message) => {
        messages.push(message);
        return true;
      },
    });
    const span = { start: Buffer.from('a'), end: Buffer.from('z') };
    watch.create({
      ...{ kind: 'create', watchId: 1, rangeId: 2, epoch: EPOCH, span, startRevision: 0 },
      ...{ noPut: false, noDelete: false, prevKv: false },
    });
    const receiver = await staged(replica, booted.stream);
    expect(messages.map((message) => (message.kind === 'ended' ? message.code : message.kind))).toEqual([
      'created',
      'NOT_LEADER',
    ]);
    expect([replica.leading, replica.watches.refusal({ epoch: EPOCH, span })?.code]).toEqual([false, 'NOT_LEADER']);
    await receiver.finish();
    replica.roleChanged({ role: 'follower', term: 4, leader: 2 });
    expect(replica.leading).toBe(false);
    expect(replica.state.applied.index).toBe(20);
  });
});

test('versions that the sender of a snapshot had not collected yet are collected where it was installed', async () => {
  const { engine, ...booted } = await started();
  const replica = replicaOf(booted);
  const old = [3, 6].map((revision) => ({ key: historyKey(Buffer.from('k'), revision), value: keyAt(revision).value }));
  const stream = await streamOf([keyAt(19), ...old], 20, stateAt(20, { compactRevision: 10 }));
  const receiver = await staged(replica, stream);
  await receiver.finish();
  const left = async () => (await engine.scan(HISTORY)).map((row) => parseHistoryKey(row.key).revision);
  for (let tries = 0; tries < 5_000 && (await left()).length > 1; tries++) await turn();
  expect(await left()).toEqual([6]); // what a read at 10 sees
  replica.close();
});

describe('a new replica', () => {
  const replicas = [1, 2, 3].map((id) => ({ replicaId: id + 10, nodeId: id, type: 'voter' as const }));

  test('of a new range begins with the membership of its descriptor', async () => {
    const { store, host } = await boot(new CrashWorld(1));
    await store.createReplica({ ...DESCRIPTOR, replicas }, 11);
    expect(host.created).toMatchObject([{ applied: { index: 0, term: 0 }, conf: confOf([11, 12, 13]) }]);
    store.stop();
  });

  test('that joins a range begins without membership, after a restart too: what its descriptor says came later', async () => {
    const world = new CrashWorld(1);
    const descriptor = { ...DESCRIPTOR, replicas, epoch: { ...DESCRIPTOR.epoch, confVersion: 2 } };
    const { store, host } = await boot(world);
    await store.createReplica(descriptor, 11);
    store.stop();
    world.crash();
    const again = await boot(world);
    await again.store.start();
    for (const { created } of [host, again.host]) {
      expect(created).toMatchObject([{ groupId: 2, replicaId: 11, applied: { index: 0, term: 0 }, conf: confOf([]) }]);
    }
    again.store.stop();
  });

  test('that starts again takes what the log held for it, and leaves nothing of it in memory', async () => {
    const { world } = await started();
    world.crash();
    const recovered = new Map([[2, HELD]]);
    const { store, host } = await boot(world, { recovered });
    await store.start();
    expect(host.created[0]?.recovered).toBe(HELD);
    expect(recovered.size).toBe(0);
    store.stop();
  });
});

describe('a node whose log has a range', () => {
  test('of which its engine holds nothing does not start: the engine has lost it', async () => {
    const { world } = await started();
    world.crash();
    const { store, host } = await boot(world, { recovered: new Map([2, 7].map((rangeId) => [rangeId, HELD])) });
    await expect(store.start()).rejects.toThrow('damaged in range 7: the write-ahead log has entries of it');
    expect(host.created).toEqual([]);
    store.stop();
  });

  test('of the master alone starts, also when it is no master any more', async () => {
    const { store, host } = await boot(new CrashWorld(1), { recovered: new Map([[MASTER_GROUP, HELD]]) });
    await store.start();
    expect(host.created).toEqual([]);
    store.stop();
  });
});

describe('a node that died while a replica installed a snapshot', () => {
  async function died(): Promise<CrashWorld> {
    const { world, stream, ...booted } = await started();
    const receiver = await staged(replicaOf(booted), stream);
    world.batchesUntilFull = 2;
    await receiver.finish().catch(() => undefined);
    world.batchesUntilFull = Number.POSITIVE_INFINITY;
    world.failures.length = 0;
    world.crash();
    return world;
  }

  test('runs the replica once that is finished, at the position of the snapshot', async () => {
    const booted = await boot(await died(), { recovered: new Map([[2, HELD]]) });
    const { store, host } = booted;
    const starting = store.start();
    const again = store.createReplica(DESCRIPTOR, 1);
    expect([[...store.replicas()].length, host.created.length]).toEqual([0, 0]);
    await Promise.all([starting, again]);
    expect(host.created.map(({ groupId, applied }) => [groupId, applied])).toEqual([[2, { index: 20, term: 2 }]]);
    expect(await read(replicaOf(booted))).toBe('at 19, revision 20');
    store.stop();
  });

  test('creates no replica that shares keys with it, neither before nor afterwards', async () => {
    const { store, host } = await boot(await died());
    const starting = store.start();
    const other = { ...DESCRIPTOR, rangeId: 7, start: currentKey(Buffer.from('m')) };
    await expect(store.createReplica(other, 1)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await starting;
    await expect(store.createReplica(other, 1)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(host.created.map(({ groupId }) => groupId)).toEqual([2]);
    store.stop();
  });

  test('does not run the replica when the node stops before that is finished, and does so at the next start', async () => {
    const world = await died();
    const { store, host } = await boot(world);
    const starting = store.start();
    store.stop();
    await starting;
    expect(host.created).toEqual([]);
    world.crash();
    const next = await boot(world);
    await next.store.start();
    expect(next.host.created.map(({ applied }) => applied)).toEqual([{ index: 20, term: 2 }]);
    next.store.stop();
  });

  test('does not run the replica when its file is gone, and says why', async () => {
    const world = await died();
    for (const name of await world.sim.list('snapshots')) await world.sim.remove(`snapshots/${name}`);
    const { store, host } = await boot(world);
    await expect(store.start()).rejects.toThrow(/damaged in range 2: snapshots.2-1.snapshot was installed there/);
    expect(host.created).toEqual([]);
    store.stop();
  });
});
