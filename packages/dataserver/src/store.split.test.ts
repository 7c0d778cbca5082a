import { type Row, SeededRandom } from '@remora/base';
import {
  type Command,
  type CommandBatch,
  type Epoch,
  encodeEntry,
  kvRoutingKey,
  type RangeDescriptor,
} from '@remora/protocol';
import { confOf, type Entry, type GroupId } from '@remora/raft';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Booted, boot } from '../test/support/booted-store.ts';
import { CrashWorld } from '../test/support/crash-world.ts';
import { DESCRIPTOR, put, range } from '../test/support/state-bed.ts';
import { prepare } from '../test/support/txn-bed.ts';
import type { RangeReplica } from './range/range-replica.ts';
import { rangeSpans } from './state/bounds.ts';
import { CHILD_BEGINS } from './state/reshape/split.ts';

const REPLICAS = [1, 2, 3].map((nodeId) => ({ replicaId: 10 + nodeId, nodeId, type: 'voter' as const }));
const PARENT: RangeDescriptor = { ...DESCRIPTOR, replicas: REPLICAS };
const CHILD_ID = 3;
const BORDER = kvRoutingKey(Buffer.from('m'));
const SPLIT: Command = {
  ...{ type: 'split', at: BORDER, epoch: PARENT.epoch, childId: CHILD_ID, keys: 1, bytes: 2 },
  replicas: REPLICAS.map(({ nodeId }) => ({ nodeId, replicaId: 30 + nodeId })),
};
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** What the log of a group has behind a position: commands, one entry each. */
function logOf(commands: readonly (readonly [version: number, command: Command])[], behind = 0): readonly Entry[] {
  return commands.map(([version, command], i) => {
    const batch: CommandBatch = {
      ...{ rangeTimeMs: 1_000 + i, wallMs: 0, epoch: { ...PARENT.epoch, version } },
      commands: [{ requestId: `${version}.${i}`, deadlineMs: 60_000, command }],
      ...(version === 1 ? {} : { block: { first: 1_000 + 10 * i, count: 1 } }),
    };
    return { index: behind + i + 1, term: 2, type: 'normal', data: encodeEntry(batch) };
  });
}

const kv = (key: string, value: string): Command => ({ type: 'kv', op: put(key, value) as never });
const early = [kv('a', 'old'), kv('z', 'old'), kv('m', 'old'), kv('a', 'older')];
const LOGS: ReadonlyMap<GroupId, readonly Entry[]> = new Map([
  [
    PARENT.rangeId,
    logOf([
      ...early.map((command) => [1, command] as const),
      [1, SPLIT],
      [1, kv('a', 'too late')],
      ...['b', 'a', 'c'].map((key) => [2, kv(key, 'new')] as const),
    ]),
  ],
  [
    CHILD_ID,
    logOf(
      ['z', 'y', 'm', 'z'].map((key, i) => [2, kv(key, `child ${i}`)] as const),
      CHILD_BEGINS.index,
    ),
  ],
]);

/** Applies the next entry that a replica lacks; false when there is none. */
async function applyNext(replica: RangeReplica): Promise<boolean> {
  const { applied, conf } = replica.state;
  const entry = LOGS.get(replica.rangeId)?.find(({ index }) => index === applied.index + 1);
  if (entry === undefined || replica.replacing) return false;
  await replica.apply([entry], conf);
  return true;
}

function parentOf(store: Booted['store']): RangeReplica {
  const parent = [...store.replicas()].find(({ rangeId }) => rangeId === PARENT.rangeId);
  if (parent === undefined) throw new Error('it is there');
  return parent;
}

/** The parent as it has just applied the split, with a checkpoint of all before. */
async function toSplit({ store, checkpointer }: Booted): Promise<RangeReplica> {
  const parent = parentOf(store);
  for (let i = 0; i < 4; i++) await applyNext(parent);
  await checkpointer.run();
  await applyNext(parent);
  return parent;
}

function isDone({ store }: Booted): boolean {
  const ends = [...store.replicas()].map(
    ({ rangeId, state }) => LOGS.get(rangeId)?.at(-1)?.index === state.applied.index,
  );
  return ends.length === 2 && ends.every((end) => end);
}

/** Lets both replicas apply what there is for them, with checkpoints in between, until that is all. */
async function work(booted: Booted, random: SeededRandom, steps: { checkpoints: boolean }): Promise<void> {
  let checkpoints: Promise<void> = Promise.resolve();
  for (let tries = 0; tries < 3_000 && !isDone(booted); tries++) {
    const replicas = [...booted.store.replicas()];
    const replica = replicas[random.int(replicas.length)];
    if (replica !== undefined) await applyNext(replica);
    if (steps.checkpoints && random.int(4) === 0) {
      const next = booted.checkpointer.run();
      checkpoints = Promise.all([checkpoints, next]).then(() => {});
      if (random.int(2) === 0) await next;
    }
    for (let turns = random.int(3); turns > 0; turns--) await turn();
  }
  await checkpoints;
}

async function contents({ engine, store }: Booted): Promise<Readonly<Record<string, readonly Row[]>>> {
  const found: Record<string, readonly Row[]> = {};
  for (const { rangeId, state } of store.replicas()) {
    const spans = rangeSpans(rangeId, state.bounds).slice(0, -1); // in which pages outcomes lie differs
    found[rangeId] = (await Promise.all(spans.map((span) => engine.scan(span)))).flat();
  }
  return found;
}

function told({ store }: Booted) {
  return [...store.replicas()]
    .sort((a, b) => a.rangeId - b.rangeId)
    .map(({ rangeId, group, state }) => {
      const { descriptor, conf, applied, revision, keys, bytes } = state;
      const outcomes = [...state.outcomes.askable(0)].map(({ requestId }) => requestId).sort();
      return { rangeId, replicaId: group.replicaId, descriptor, conf, applied, revision, keys, bytes, outcomes };
    });
}

/** A node that died at any moment, with what its log has of groups. */
async function recover(world: CrashWorld, logged: Set<GroupId>, random: SeededRandom): Promise<Booted> {
  for (let deaths = 0; ; deaths++) {
    const booted = await boot(world, { logged, ...(deaths < 2 ? { crashAtStep: 1 + random.int(6) } : {}) });
    const all = async (): Promise<'done'> => {
      await booted.store.start();
      await work(booted, random, { checkpoints: true });
      return 'done';
    };
    if ((await Promise.race([all(), booted.crashed])) === 'crashed') continue;
    expect(booted.failures).toEqual([]);
    return booted;
  }
}

async function founded(world: CrashWorld, logged: Set<GroupId>): Promise<void> {
  const booted = await boot(world, { logged });
  await booted.store.start();
  await booted.store.createReplica(PARENT, 11);
  world.crash();
}

async function undisturbed(): Promise<Booted> {
  const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
  await founded(world, logged);
  const booted = await boot(world, { logged });
  await booted.store.start();
  await work(booted, new SeededRandom(1), { checkpoints: false });
  return booted;
}

describe('a split', () => {
  test('runs the child under its own id once it is durable together with the split, and not before', async () => {
    const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
    await founded(world, logged);
    const booted = await boot(world, { logged });
    const { store, host } = booted;
    await store.start();
    const parent = parentOf(store);
    for (let i = 0; i < 5; i++) await applyNext(parent);
    expect(parent.state.descriptor.end).toEqual(BORDER);
    expect(host.runs(CHILD_ID)).toBe(false);
    // Whoever asks for it meanwhile waits for the same one.
    await store.createReplica(
      { ...PARENT, rangeId: CHILD_ID, start: BORDER, epoch: { confVersion: 1, version: 2 } },
      31,
    );
    expect(host.created.at(-1)).toMatchObject({
      ...{ groupId: CHILD_ID, replicaId: 31, applied: CHILD_BEGINS, conf: confOf([31, 32, 33]) },
      firstWaitTicks: 4,
    });
    world.crash();
    const again = await boot(world, { logged });
    await again.store.start();
    expect(told(again).map(({ rangeId, applied }) => [rangeId, applied.index])).toEqual([
      [PARENT.rangeId, 5],
      [CHILD_ID, CHILD_BEGINS.index],
    ]);
  });

  test('adds no failure of its own if the host stops itself before the child runs', async () => {
    const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
    await founded(world, logged);
    const booted = await boot(world, { logged });
    await booted.store.start();
    const parent = parentOf(booted.store);
    for (let i = 0; i < 4; i++) await applyNext(parent);
    await applyNext(parent);
    booted.host.stopped = true; // the log failed, and the host reported that
    const child = { ...PARENT, rangeId: CHILD_ID, start: BORDER, epoch: { confVersion: 1, version: 2 } };
    await expect(booted.store.createReplica(child, 31)).rejects.toThrow('the node is stopping');
    expect(booted.failures).toEqual([]);
  });

  test.each([
    { name: 'here', role: { role: 'leader', term: 2, leader: 11 }, begins: { firstLeader: 31 } },
    { name: 'on another node', role: { role: 'follower', term: 2, leader: 13 }, begins: { firstLeader: 33 } },
    { name: 'in a later term', role: { role: 'leader', term: 3, leader: 11 }, begins: { firstWaitTicks: 0 } },
    {
      name: 'in a later term elsewhere',
      role: { role: 'follower', term: 3, leader: 13 },
      begins: { firstWaitTicks: 4 },
    },
    { name: 'nowhere', role: { role: 'follower', term: 2, leader: 0 }, begins: { firstWaitTicks: 4 } },
  ] as const)(
    'of a range that is led $name: its child begins with that leader if it led in the term of the split (S7)',
    async ({ role, begins }) => {
      const { store, host } = await boot(new CrashWorld(1));
      await store.createReplica(PARENT, 11);
      const parent = parentOf(store);
      parent.roleChanged(role);
      for (let i = 0; i < 5; i++) await applyNext(parent);
      for (let i = 0; i < 500 && !host.runs(CHILD_ID); i++) await turn();
      const { firstLeader, firstWaitTicks } = host.created.at(-1) ?? {};
      expect({ firstLeader, firstWaitTicks }).toEqual({ firstLeader: undefined, firstWaitTicks: undefined, ...begins });
    },
  );

  // Found by the simulation of whole clusters (70100): the process ended in the middle of its orderly stop.
  test('whose checkpoint fails stops the node in order, and leaves no rejection that nobody handles', async () => {
    const { store, checkpointer, failures } = await boot(new CrashWorld(1));
    await store.createReplica(PARENT, 11);
    const parent = parentOf(store);
    for (let i = 0; i < 4; i++) await applyNext(parent);
    const unhandled: unknown[] = [];
    const listener = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', listener);
    const failure = new Error('EIO: write failed');
    checkpointer.run = () => Promise.reject(failure);
    await applyNext(parent);
    for (let i = 0; i < 10; i++) await turn();
    process.off('unhandledRejection', listener);
    expect({ failures, unhandled }).toEqual({ failures: [failure], unhandled: [] });
    await expect(parent.settled).rejects.toBe(failure);
  });

  test('leaves no leader to the child that is found after a crash', async () => {
    const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
    const { store, host } = await boot(world, { logged });
    await store.createReplica(PARENT, 11);
    parentOf(store).roleChanged({ role: 'leader', term: 2, leader: 11 });
    for (let i = 0; i < 5; i++) await applyNext(parentOf(store));
    for (let i = 0; i < 500 && !host.runs(CHILD_ID); i++) await turn();
    world.crash();
    const again = await boot(world, { logged });
    await again.store.start();
    const child = again.host.created.find(({ groupId }) => groupId === CHILD_ID);
    expect(child).toMatchObject({ replicaId: 31, applied: CHILD_BEGINS });
    expect(child?.firstLeader).toBeUndefined();
  });

  test('is answered with the descriptors of both to whoever asks for what has left', async () => {
    const { store } = await undisturbed();
    const stale = parentOf(store).context.staleEpoch().details?.ranges;
    expect((stale as unknown[][]).map(([rangeId]) => rangeId)).toEqual([PARENT.rangeId, CHILD_ID]);
  });

  test('is answered so after a restart as well, which remembers no split', async () => {
    const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
    await founded(world, logged);
    const booted = await boot(world, { logged });
    await booted.store.start();
    await work(booted, new SeededRandom(1), { checkpoints: true });
    world.crash();
    const { store } = await boot(world, { logged });
    await store.start();
    const stale = parentOf(store).context.staleEpoch().details?.ranges;
    expect((stale as unknown[][]).map(([rangeId]) => rangeId)).toEqual([PARENT.rangeId, CHILD_ID]);
  });

  test('is told to a master that knows the range as it was before, or has not heard of the child', async () => {
    const { store } = await undisturbed();
    const told = (known: Readonly<Record<number, Epoch>>): number[] =>
      store
        .changedSince(Object.entries(known).map(([id, epoch]) => ({ ...PARENT, rangeId: Number(id), epoch })))
        .map(({ rangeId }) => rangeId);
    const after = { confVersion: 1, version: 2 };
    expect(told({ [PARENT.rangeId]: PARENT.epoch })).toEqual([PARENT.rangeId, CHILD_ID]);
    expect(told({ [PARENT.rangeId]: after })).toEqual([CHILD_ID]);
    expect(told({ [PARENT.rangeId]: after, [CHILD_ID]: after })).toEqual([]);
    expect(
      told({ [PARENT.rangeId]: { confVersion: 2, version: 2 }, [CHILD_ID]: { confVersion: 1, version: 1 } }),
    ).toEqual([CHILD_ID]);
  });

  test('keeps the child from being created before, by a word of the master that is ahead of the log', async () => {
    const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
    await founded(world, logged);
    const booted = await boot(world, { logged });
    await booted.store.start();
    const child = { ...PARENT, rangeId: CHILD_ID, start: BORDER, epoch: { confVersion: 1, version: 2 } };
    await expect(booted.store.createReplica(child, 31)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await work(booted, new SeededRandom(1), { checkpoints: true });
    expect(told(booted)).toEqual(told(await undisturbed()));
  });

  test('of long ago does not make a replica again that has ended here', async () => {
    const { store, engine } = await boot(new CrashWorld(1));
    await store.start();
    const joining = { ...PARENT, rangeId: CHILD_ID, start: BORDER, epoch: { confVersion: 2, version: 2 } };
    await store.createReplica(joining, 45);
    store.removeReplica({ rangeId: CHILD_ID, replicaId: 45, confVersion: 9 });
    // It is taken away, and then the parent may come.
    const created = (): Promise<boolean> =>
      store.createReplica(PARENT, 11).then(
        () => true,
        () => false,
      );
    for (let i = 0; i < 500 && !(await created()); i++) await turn();
    const parent = parentOf(store);
    for (let i = 0; i < 6; i++) await applyNext(parent);
    await turn();
    expect([...store.replicas()].map(({ rangeId }) => rangeId)).toEqual([PARENT.rangeId]);
    expect(parent.state.descriptor.end).toEqual(BORDER);
    expect(engine.get(BORDER)).toBeDefined(); // what it holds there nobody reads
  });
});

describe('those whom the leader of a range serves at a split', () => {
  const LOCK = { namespace: 'n', name: Buffer.from('l') };
  const owner = (token: string) => ({ session: { lease: 7n, incarnation: 2 }, token });
  const acquire = (token: string): Command => ({
    type: 'lock',
    command: {
      ...{ type: 'acquire', lock: LOCK, owner: owner(token), wait: true, waitUntilMs: 0 },
      ...{ deadlineMs: 0, depthMax: 1, data: Buffer.alloc(0) },
    },
  });

  /** A leader with a lease, a held lock that is waited for, and some keys; behind it a split at `at`. */
  async function led(at: Uint8Array) {
    const { store } = await boot(new CrashWorld(1));
    await store.createReplica(PARENT, 11);
    const parent = parentOf(store);
    parent.roleChanged({ role: 'leader', term: 2, leader: 11 });
    const grant: Command = { type: 'leaseGrant', id: 7n, ttlMs: 60_000, attributes: {} };
    const log = logOf(
      [grant, acquire('held'), acquire('waits'), kv('a', '1'), kv('z', '1'), { ...SPLIT, at }].map((c) => [1, c]),
    );
    const apply = async (count: number): Promise<void> => {
      const { applied, conf } = parent.state;
      for (const entry of log.slice(applied.index, applied.index + count)) await parent.apply([entry], conf);
    };
    return { store, parent, apply };
  }

  test('get what came before, and then ask anew if their keys have left; the others go on', async () => {
    const { store, parent, apply } = await led(BORDER);
    await apply(3);
    const told: string[] = [];
    const stream = parent.watches.openStream({
      send: (message) => {
        const what = message.kind === 'ended' ? message.code : message.kind === 'events' ? message.events.length : '';
        told.push(`${message.watchId} ${message.kind} ${what}`.trim());
        return true;
      },
    });
    const spans = [
      ['a', 'b'],
      ['z', '~'],
      ['a', '~'],
    ].map(([from = '', to = '']) => ({ start: Buffer.from(from), end: Buffer.from(to) }));
    for (const [i, span] of spans.entries()) {
      const flags = { noPut: false, noDelete: false, prevKv: false };
      stream.create({
        kind: 'create',
        watchId: i + 1,
        rangeId: 2,
        epoch: PARENT.epoch,
        span,
        startRevision: 0,
        ...flags,
      });
    }
    const before = told.length;
    await apply(3);
    expect(told.slice(before)).toEqual([
      '1 events 1',
      '3 events 1',
      '2 events 1',
      '3 events 1',
      '2 ended STALE_EPOCH',
      '3 ended STALE_EPOCH',
    ]);
    const late = { epoch: parent.state.descriptor.epoch, span: spans[1] ?? PARENT };
    expect(parent.watches.refusal(late)?.code).toBe('STALE_EPOCH');
    store.stop();
  });

  test('and watch keys that leave are not told further than a transaction may commit that leaves with them (W4)', async () => {
    const { store } = await boot(new CrashWorld(1));
    await store.createReplica({ ...PARENT, revisionSource: 'master' }, 11);
    const parent = parentOf(store);
    parent.roleChanged({ role: 'leader', term: 2, leader: 11 });
    const told: string[] = [];
    const stream = parent.watches.openStream({
      send: (message) => {
        const keys = message.kind === 'events' ? message.events.map((event) => `${event.kv.key}`) : [];
        told.push([message.kind, 'revision' in message ? message.revision : '', ...keys].join(' ').trim());
        return true;
      },
    });
    const flags = { noPut: false, noDelete: false, prevKv: false, startRevision: 0 };
    const span = { start: Buffer.from('a'), end: Buffer.from('~') };
    const { rangeId, epoch } = PARENT;
    stream.create({ kind: 'create', watchId: 1, rangeId, epoch, span, ...flags });
    const log = [kv('a', '1'), prepare('t', 1, [put('z', '1')]), kv('a', '2'), SPLIT];
    for (const [i, command] of log.entries()) {
      const block = { first: 50 + i, count: 1 };
      const commands = [{ requestId: `${i}`, deadlineMs: 60_000, command }];
      const data = encodeEntry({ rangeTimeMs: 1_000, wallMs: 0, epoch, block, commands });
      await parent.apply([{ index: i + 1, term: 2, type: 'normal', data }], parent.state.conf);
    }
    // The transaction may commit at 51: who goes on at the child must not begin above that.
    expect(told).toEqual(['created 1', 'events 50 a', 'ended']);
    store.stop();
  });

  test('and read by an epoch of before are refused, also those whose ReadIndex was under way; apply refuses the same', async () => {
    const { store, parent, apply } = await led(BORDER);
    await apply(5);
    const confirm: ((refused: undefined) => void)[] = [];
    let proposed: Uint8Array = Buffer.alloc(0);
    Object.assign(parent.group, {
      readIndex: (done: (refused: undefined) => void) => confirm.push(done),
      propose: (data: Uint8Array) => {
        proposed = data;
        return { index: 7, term: 2 };
      },
    });
    const answers: string[] = [];
    const request = { rangeId: 2, epoch: PARENT.epoch, requestId: '', authRevision: 0, deadlineMs: 0 };
    for (const key of ['a', 'z']) {
      const query = { type: 'range', op: range(key), serializable: false } as const;
      const done = (error: { code: string } | undefined): void => void answers.push(`${key} ${error?.code}`);
      parent.requests.execute({ ...request, body: { kind: 'query', query, notBefore: 0 } }, () => {}, done);
    }
    // Commands are queued when the split is applied, and proposed behind it: what stays is executed, what left is not.
    for (const key of ['b', 'y']) {
      const command: Command = { type: 'kv', op: range(key) };
      const done = (error: { code: string } | undefined): void => void answers.push(`${key} ${error?.code ?? 'done'}`);
      const identity = { requestId: `late ${key}`, authRevision: 0, deadlineMs: 50_000 };
      parent.requests.execute({ ...request, ...identity, body: { kind: 'command', command } }, () => {}, done);
    }
    await apply(1);
    for (const done of confirm) done(undefined);
    expect(answers).toEqual(['a STALE_EPOCH', 'z STALE_EPOCH']);
    await turn();
    await parent.apply([{ index: 7, term: 2, type: 'normal', data: proposed }], parent.state.conf);
    expect(answers.slice(2)).toEqual(['b done', 'y STALE_EPOCH']);
    store.stop();
  });

  test('and wait for a lock: only if it has left', async () => {
    const ended: string[] = [];
    // The lease leaves as well, as it must with the lock.
    for (const at of [BORDER, Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 7])]) {
      const { store, parent, apply } = await led(at);
      await apply(3);
      const query = { type: 'lockAwait', lock: LOCK, owner: owner('waits') } as const;
      const request = { rangeId: 2, epoch: PARENT.epoch, requestId: '', authRevision: 0, deadlineMs: 0 };
      Object.assign(parent.group, { readIndex: (done: (refused: undefined) => void) => done(undefined) });
      parent.requests.execute(
        { ...request, body: { kind: 'query', query, notBefore: 0 } },
        () => {},
        (error) => void ended.push(`${error?.code}`),
      );
      await apply(3);
      ended.push(`${parent.inFlight().lockCalls} open`);
      store.stop();
    }
    expect(ended).toEqual(['1 open', 'NOT_LEADER', 'STALE_EPOCH', '0 open']);
  });
});

describe('a snapshot that comes for the parent right behind a split', () => {
  /** The parent as it is in the end, on its way to another node. */
  async function stream() {
    const { store } = await undisturbed();
    const parent = parentOf(store);
    const { meta, chunks } = parent.snapshot();
    const bytes: Buffer[] = [];
    for await (const chunk of chunks) bytes.push(Buffer.from(chunk));
    return { meta, bytes: Buffer.concat(bytes) };
  }

  test.each(Array.from({ length: 30 }, (_, i) => i + 1))(
    'replaces nothing before the child is durable, also when the node dies at step %i',
    async (crashAtStep) => {
      const random = new SeededRandom(crashAtStep);
      const whole = await undisturbed();
      const { meta, bytes } = await stream();
      const [world, logged] = [new CrashWorld(crashAtStep), new Set<GroupId>()];
      await founded(world, logged);
      const booted = await boot(world, { logged, crashAtStep });
      let replaced = false;
      const all = async (): Promise<'done'> => {
        await booted.store.start();
        const parent = await toSplit(booted);
        const receiver = parent.install(meta);
        await receiver.chunk(bytes);
        const finished = receiver.finish().then(() => {
          replaced = true;
        });
        while (!replaced) {
          if (parent.replacing) expect(booted.host.runs(CHILD_ID)).toBe(true);
          for (const replica of booted.store.replicas()) if (replica !== parent) await applyNext(replica);
          if (random.int(3) === 0) await booted.checkpointer.run();
          await turn();
        }
        await finished;
        return 'done';
      };
      if ((await Promise.race([all(), booted.crashed])) === 'done') world.crash();
      replaced = true;
      const again = await recover(world, logged, random);
      expect(told(again)).toEqual(told(whole));
      expect(await contents(again)).toEqual(await contents(whole));
    },
  );
});

describe('a child whose parent is taken away right behind the split', () => {
  const deaths: string[] = [];

  test.each(Array.from({ length: 24 }, (_, i) => i + 1))(
    'remembers what the parent did, also when the node dies at step %i, and once more',
    async (crashAtStep) => {
      const random = new SeededRandom(crashAtStep);
      const [world, logged] = [new CrashWorld(crashAtStep), new Set<GroupId>()];
      await founded(world, logged);
      const first = await boot(world, { logged, crashAtStep });
      const removed = async (): Promise<void> => {
        await first.store.start();
        await toSplit(first);
        first.store.removeReplica({ rangeId: PARENT.rangeId, replicaId: 11, confVersion: 9 });
        for (let i = 0; i < 100; i++) await turn();
        world.crash();
      };
      await Promise.race([removed(), first.crashed]);
      const second = await boot(world, { logged, crashAtStep: 1 + random.int(10) });
      const resumed = async (): Promise<void> => {
        await second.store.start();
        for (let i = 0; i < 100; i++) await turn();
        world.crash();
      };
      await Promise.race([resumed(), second.crashed]);
      const last = await boot(world, { logged });
      await last.store.start();
      const child = told(last).find(({ rangeId }) => rangeId === CHILD_ID);
      deaths.push(child === undefined ? 'before' : 'behind');
      if (child !== undefined) expect(child.outcomes).toEqual(['1.0', '1.1', '1.2', '1.3']);
      expect([first.failures, second.failures, last.failures]).toEqual([[], [], []]);
    },
  );

  test('remembers it as well when the parent is removed in the middle of what leads to the split', async () => {
    const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
    await founded(world, logged);
    const booted = await boot(world, { logged });
    const { store, host, checkpointer, failures } = booted;
    await store.start();
    const parent = parentOf(store);
    for (let i = 0; i < 4; i++) await applyNext(parent);
    await checkpointer.run();
    const reads: Command = { type: 'kv', op: range('a', 'z') as never };
    const log = logOf([...early, reads, SPLIT].map((command) => [1, command] as const));
    const applying = parent.apply(log.slice(4), parent.state.conf);
    // As a host does: it ends the group once the state machine is not called any more.
    const remove = host.removeGroup.bind(host);
    host.removeGroup = async (groupId, recorded) => {
      await applying;
      await remove(groupId, recorded);
    };
    store.removeReplica({ rangeId: PARENT.rangeId, replicaId: 11, confVersion: 9 });
    await applying;
    for (let i = 0; i < 300 && logged.has(PARENT.rangeId); i++) await turn();
    world.crash();
    const again = await boot(world, { logged });
    await again.store.start();
    const child = told(again).find(({ rangeId }) => rangeId === CHILD_ID);
    expect(child?.outcomes).toEqual(expect.arrayContaining(['1.0', '1.1', '1.2', '1.3']));
    expect([failures, again.failures]).toEqual([[], []]);
  });

  test('remembers it as well when the node stops in order before the child runs', async () => {
    const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
    await founded(world, logged);
    const booted = await boot(world, { logged });
    await booted.store.start();
    await toSplit(booted);
    booted.store.removeReplica({ rangeId: PARENT.rangeId, replicaId: 11, confVersion: 9 });
    booted.store.stop();
    await booted.checkpointer.stop();
    for (let i = 0; i < 100; i++) await turn();
    expect(booted.host.runs(CHILD_ID)).toBe(false);
    world.crash();
    const again = await boot(world, { logged });
    await again.store.start();
    const child = told(again).find(({ rangeId }) => rangeId === CHILD_ID);
    expect(child?.outcomes).toEqual(['1.0', '1.1', '1.2', '1.3']);
    expect([booted.failures, again.failures]).toEqual([[], []]);
  });

  test('died before the split was durable, and behind that', () => {
    expect([...new Set(deaths)].sort()).toEqual(['before', 'behind']);
  });
});

describe('a crash at any step of a split', () => {
  let expected: ReturnType<typeof told>;
  let rows: Awaited<ReturnType<typeof contents>>;
  let steps = 0;
  const met = new Set<string>();

  beforeAll(async () => {
    const whole = await undisturbed();
    [expected, rows] = [told(whole), await contents(whole)];
    expect(expected.map(({ rangeId }) => rangeId)).toEqual([PARENT.rangeId, CHILD_ID]);
    steps = 24;
  });

  test.each([1, 2, 3, 4, 5, 6])('leaves what would be there without it (seed %i)', async (seed) => {
    for (let at = 1; at <= steps; at++) {
      const random = new SeededRandom(seed * 1_000 + at);
      const [world, logged] = [new CrashWorld(seed), new Set<GroupId>()];
      await founded(world, logged);
      const booted = await boot(world, { logged, crashAtStep: at });
      const all = async (): Promise<'done'> => {
        await booted.store.start();
        await work(booted, random, { checkpoints: true });
        return 'done';
      };
      const end = await Promise.race([all(), booted.crashed]);
      const childRan = logged.has(CHILD_ID);
      met.add(`${end}, ${childRan ? 'with' : 'without'} a child`);
      if (end === 'done') world.crash();
      const again = await recover(world, logged, random);
      const where = `crash at step ${at} of seed ${seed}`;
      expect(told(again), where).toEqual(expected);
      expect(await contents(again), where).toEqual(rows);
    }
  });

  test('was met before the child ran, while it ran, and at the end', () => {
    expect([...met].sort()).toEqual(['crashed, with a child', 'crashed, without a child', 'done, with a child']);
  });
});
