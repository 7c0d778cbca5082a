import { type Row, SeededRandom } from '@remora/base';
import {
  type Command,
  type CommandBatch,
  currentRanges,
  encodeEntry,
  kvRoutingKey,
  type RangeDescriptor,
} from '@remora/protocol';
import type { Entry, GroupId } from '@remora/raft';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Booted, boot } from '../test/support/booted-store.ts';
import { CrashWorld } from '../test/support/crash-world.ts';
import { DESCRIPTOR, put, range } from '../test/support/state-bed.ts';
import type { RangeReplica } from './range/range-replica.ts';
import { rangeSpans } from './state/bounds.ts';
import { ABSORBED_MAX } from './state/reshape/merging.ts';

const BORDER = kvRoutingKey(Buffer.from('m'));
const replicasOf = (base: number) =>
  [1, 2, 3].map((nodeId) => ({ replicaId: base + nodeId, nodeId, type: 'voter' as const }));
const TARGET: RangeDescriptor = { ...DESCRIPTOR, end: BORDER, replicas: replicasOf(10), revisionSource: 'master' };
const SOURCE: RangeDescriptor = { ...TARGET, rangeId: 3, start: BORDER, end: DESCRIPTOR.end, replicas: replicasOf(30) };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const kv = (key: string, value: string): Command => ({ type: 'kv', op: put(key, value) as never });
const into = { targetId: 2, round: 0 };

/** What the log of a group has: commands, one entry each, each with a revision above all before. */
function logOf(rangeId: number, commands: readonly (readonly [version: number, command: Command])[]): readonly Entry[] {
  return commands.map(([version, command], i) => {
    const numbered = command.type === 'kv';
    const batch: CommandBatch = {
      ...{ rangeTimeMs: 1_000 + i, wallMs: 0, epoch: { confVersion: 1, version } },
      commands: [{ requestId: numbered ? `${rangeId}.${i}` : '', deadlineMs: numbered ? 60_000 : 0, command }],
      ...(numbered ? { block: { first: 1_000 * version + 10 * i + rangeId, count: 1 } } : {}),
    };
    return { index: i + 1, term: 2, type: 'normal', data: encodeEntry(batch) };
  });
}

const SEAL_AT = 5;
const MERGE_AT = 4;
/** What the source had written last. */
const REVISION = 1_000 + 10 * 3 + 3;
const LOGS: ReadonlyMap<GroupId, readonly Entry[]> = new Map([
  [
    TARGET.rangeId,
    logOf(TARGET.rangeId, [
      ...['a', 'b', 'a'].map((key, i) => [1, kv(key, `${i}`)] as const),
      [
        1,
        {
          ...{ type: 'merge', epoch: TARGET.epoch, round: 0 },
          source: { descriptor: SOURCE, index: SEAL_AT, revision: REVISION },
        },
      ],
      ...['z', 'm', 'a', 'y'].map((key) => [2, kv(key, 'after')] as const),
    ]),
  ],
  [
    SOURCE.rangeId,
    logOf(SOURCE.rangeId, [
      ...['z', 'x', 'z', 'm'].map((key, i) => [1, kv(key, `${i}`)] as const),
      [1, { type: 'seal', epoch: SOURCE.epoch, into }],
      [1, kv('z', 'too late')],
      [1, { type: 'noop' }],
    ]),
  ],
]);

function replicaIn({ store }: Booted, rangeId: number): RangeReplica | undefined {
  return [...store.replicas()].find((replica) => replica.rangeId === rangeId);
}

/** What every node has said of the source, as far as this one is concerned: a crash does not take it back. */
interface Confirmed {
  sealed: boolean;
}

/** Applies the next entry that a replica lacks, the merge only when it is proposed; false when there is none. */
async function applyNext(replica: RangeReplica, confirmed: Confirmed): Promise<boolean> {
  const { applied, conf } = replica.state;
  const entry = LOGS.get(replica.rangeId)?.[applied.index];
  if (entry === undefined || replica.replacing) return false;
  if (replica.rangeId === TARGET.rangeId && entry.index === MERGE_AT && !confirmed.sealed) return false;
  await replica.apply([entry], conf);
  return true;
}

function isDone(booted: Booted): boolean {
  const ranges = [...booted.store.replicas()];
  return ranges.length === 1 && ranges[0]?.state.applied.index === LOGS.get(TARGET.rangeId)?.length;
}

/** Lets both replicas apply what there is for them, with checkpoints in between, until that is all. */
async function work(booted: Booted, random: SeededRandom, confirmed: Confirmed): Promise<void> {
  for (let tries = 0; tries < 3_000 && !isDone(booted); tries++) {
    const replicas = [...booted.store.replicas()];
    const replica = replicas[random.int(replicas.length)];
    if (replica !== undefined) await applyNext(replica, confirmed);
    if (random.int(4) === 0) {
      const sealed = (replicaIn(booted, SOURCE.rangeId)?.state.applied.index ?? 0) >= SEAL_AT;
      const next = booted.checkpointer.run().then(() => {
        confirmed.sealed ||= sealed;
      });
      if (random.int(2) === 0) await next;
    }
    for (let turns = random.int(3); turns > 0; turns--) await turn();
  }
}

async function contents({ engine, store }: Booted): Promise<readonly Row[]> {
  const [target] = [...store.replicas()];
  if (target === undefined) throw new Error('the target is there');
  const spans = rangeSpans(target.rangeId, target.state.bounds).slice(0, -1); // in which pages outcomes lie differs
  return (await Promise.all(spans.map((span) => engine.scan(span)))).flat();
}

function told({ store }: Booted) {
  return [...store.replicas()].map(({ rangeId, group, state }) => {
    const { descriptor, conf, applied, revision, keys, bytes, merging } = state;
    const outcomes = [...state.outcomes.askable(0)].map(({ requestId }) => requestId).sort();
    return { rangeId, replicaId: group.replicaId, descriptor, conf, applied, revision, keys, bytes, merging, outcomes };
  });
}

async function founded(world: CrashWorld, logged: Set<GroupId>): Promise<void> {
  const { store } = await boot(world, { logged });
  await store.start();
  await store.createReplica(TARGET, 11);
  await store.createReplica(SOURCE, 31);
  world.crash();
}

/** A node that died at any moment, with what its log has of groups, brought to the end of it. */
async function recover(
  world: CrashWorld,
  logged: Set<GroupId>,
  random: SeededRandom,
  confirmed: Confirmed,
): Promise<Booted> {
  for (let deaths = 0; ; deaths++) {
    const booted = await boot(world, { logged, ...(deaths < 2 ? { crashAtStep: 1 + random.int(8) } : {}) });
    const all = async (): Promise<'done'> => {
      await booted.store.start();
      await work(booted, random, confirmed);
      return 'done';
    };
    if ((await Promise.race([all(), booted.crashed])) === 'crashed') continue;
    expect(booted.failures).toEqual([]);
    return booted;
  }
}

async function undisturbed(): Promise<Booted> {
  const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
  await founded(world, logged);
  const booted = await boot(world, { logged });
  await booted.store.start();
  await work(booted, new SeededRandom(1), { sealed: false });
  return booted;
}

/** A node with the source sealed for good, and the target right before the merge. */
async function sealedNode(world: CrashWorld, logged: Set<GroupId>, crashAtStep?: number): Promise<Booted> {
  await founded(world, logged);
  const first = await boot(world, { logged });
  await first.store.start();
  for (let i = 0; i < SEAL_AT; i++) await applyNext(must(replicaIn(first, SOURCE.rangeId)), { sealed: false });
  for (let i = 1; i < MERGE_AT; i++) await applyNext(must(replicaIn(first, TARGET.rangeId)), { sealed: false });
  await first.checkpointer.run();
  world.crash();
  return boot(world, { logged, ...(crashAtStep === undefined ? {} : { crashAtStep }) });
}

async function startedNode(seed: number): Promise<Booted> {
  const booted = await sealedNode(new CrashWorld(seed), new Set());
  await booted.store.start();
  return booted;
}

function must<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('it is there');
  return found;
}

describe('a crash at any step of a merge', () => {
  let expected: ReturnType<typeof told>;
  let rows: readonly Row[];
  const met = new Set<string>();

  beforeAll(async () => {
    const whole = await undisturbed();
    [expected, rows] = [told(whole), await contents(whole)];
  });

  test('there is nothing of the source but what the target has of it', () => {
    expect(expected).toMatchObject([
      {
        rangeId: 2,
        replicaId: 11,
        merging: { round: 1, absorbed: [3] },
        keys: 6,
        descriptor: { epoch: { version: 2 } },
      },
    ]);
    expect(expected[0]?.outcomes).toEqual(
      [0, 1, 2, 4, 5, 6, 7].map((i) => `2.${i}`).concat([0, 1, 2, 3].map((i) => `3.${i}`)),
    );
    expect(rows.map(({ value }) => Buffer.from(value).includes('too late'))).not.toContain(true);
  });

  test.each([1, 2, 3, 4, 5, 6])('leaves what would be there without it (seed %i)', async (seed) => {
    for (let at = 1; at <= 24; at++) {
      const random = new SeededRandom(seed * 1_000 + at);
      const confirmed = { sealed: false };
      const [world, logged] = [new CrashWorld(seed), new Set<GroupId>()];
      await founded(world, logged);
      const booted = await boot(world, { logged, crashAtStep: at });
      const all = async (): Promise<'done'> => {
        await booted.store.start();
        await work(booted, random, confirmed);
        return 'done';
      };
      const end = await Promise.race([all(), booted.crashed]);
      met.add(`${end}, ${replicaIn(booted, SOURCE.rangeId) === undefined ? 'behind' : 'before'} the merge`);
      if (end === 'done') world.crash();
      const again = await recover(world, logged, random, confirmed);
      const where = `crash at step ${at} of seed ${seed}`;
      expect(told(again), where).toEqual(expected);
      expect(await contents(again), where).toEqual(rows);
      for (let i = 0; i < 200 && logged.has(SOURCE.rangeId); i++) await turn();
      expect([...logged], where).toEqual([TARGET.rangeId]);
    }
  });

  test('was met before the merge and behind it, and at the end', () => {
    expect([...met].sort()).toEqual([
      'crashed, before the merge',
      'crashed, behind the merge',
      'done, behind the merge',
    ]);
  });
});

describe('a snapshot of the target from behind the merge', () => {
  async function stream() {
    const { meta, chunks } = must(replicaIn(await undisturbed(), TARGET.rangeId)).snapshot();
    const bytes: Buffer[] = [];
    for await (const chunk of chunks) bytes.push(Buffer.from(chunk));
    return { meta, bytes: Buffer.concat(bytes) };
  }

  test.each(Array.from({ length: 24 }, (_, i) => i + 1))(
    'ends the source in the step that makes it the target’s state, also when the node dies at step %i',
    async (crashAtStep) => {
      const [whole, { meta, bytes }] = [await undisturbed(), await stream()];
      const random = new SeededRandom(crashAtStep);
      const [world, logged] = [new CrashWorld(crashAtStep), new Set<GroupId>()];
      const booted = await sealedNode(world, logged, crashAtStep);
      const all = async (): Promise<'done'> => {
        await booted.store.start();
        const target = must(replicaIn(booted, TARGET.rangeId));
        const receiver = target.install(meta);
        await receiver.chunk(bytes);
        expect(replicaIn(booted, SOURCE.rangeId)).toBeDefined();
        await receiver.finish();
        expect(replicaIn(booted, SOURCE.rangeId)).toBeUndefined();
        for (let i = 0; i < 300 && logged.has(SOURCE.rangeId); i++) await turn();
        return 'done';
      };
      if ((await Promise.race([all(), booted.crashed])) === 'done') world.crash();
      expect(booted.failures).toEqual([]);
      // From here on by the log, if the snapshot is not there.
      const again = await recover(world, logged, random, { sealed: true });
      expect(told(again)).toEqual(told(whole));
      expect(await contents(again)).toEqual(await contents(whole));
    },
  );

  test('waits as long as the source is not sealed here', async () => {
    const { meta, bytes } = await stream();
    const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
    await founded(world, logged);
    const booted = await boot(world, { logged });
    await booted.store.start();
    const receiver = must(replicaIn(booted, TARGET.rangeId)).install(meta);
    await expect(receiver.chunk(bytes)).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    expect(replicaIn(booted, SOURCE.rangeId)).toBeDefined();
  });

  // The source would have lost its rows to a replica that is being taken away, and would have run on without them.
  test('is not installed any more once the target has ended here: the source stays as it is', async () => {
    const { meta, bytes } = await stream();
    const booted = await startedNode(1);
    const source = must(replicaIn(booted, SOURCE.rangeId));
    const rows = (): Promise<readonly Row[]> => booted.engine.scan(source.state.bounds.routed);
    const before = await rows();
    const receiver = must(replicaIn(booted, TARGET.rangeId)).install(meta);
    await receiver.chunk(bytes);
    const finished = receiver.finish().then(
      () => 'installed',
      (error: { readonly code?: string }) => error.code,
    );
    // As a host does: it ends the group once nothing is being installed in it.
    const { host } = booted;
    const remove = host.removeGroup.bind(host);
    host.removeGroup = async (groupId, recorded) => {
      await finished;
      await remove(groupId, recorded);
    };
    booted.store.removeReplica({ rangeId: TARGET.rangeId, replicaId: 11, confVersion: 9 });
    expect(await finished).toBe('RESOURCE_EXHAUSTED');
    for (let i = 0; i < 300; i++) await turn();
    expect(replicaIn(booted, SOURCE.rangeId)).toBe(source);
    expect(before.length).toBeGreaterThan(0);
    expect(await rows()).toEqual(before);
    expect(booted.failures).toEqual([]);
  });
});

describe('a sealed source', () => {
  const word = { rangeId: SOURCE.rangeId, replicaId: 31, confVersion: 9 };

  test('is not taken away by the master’s word while the target here may still come to the merge', async () => {
    const booted = await startedNode(1);
    booted.store.removeReplica(word);
    expect(replicaIn(booted, SOURCE.rangeId)).toBeDefined();
    await applyNext(must(replicaIn(booted, TARGET.rangeId)), { sealed: true });
    expect(replicaIn(booted, SOURCE.rangeId)).toBeUndefined();
    expect(must(replicaIn(booted, TARGET.rangeId)).state).toMatchObject({ revision: REVISION, keys: 5 });
  });

  test('is taken away where there is no target any more, with its rows', async () => {
    const booted = await startedNode(1);
    booted.store.removeReplica({ rangeId: TARGET.rangeId, replicaId: 11, confVersion: 9 });
    for (let i = 0; i < 300; i++) await turn();
    booted.store.removeReplica(word);
    for (let i = 0; i < 300; i++) await turn();
    expect([...booted.store.replicas()]).toEqual([]);
    expect(await booted.engine.scan({ start: Buffer.from([1]), end: Buffer.from([5]) })).toEqual([]);
  });

  describe('whose target is being taken away', () => {
    /** The target is removed, and its group does not end before `until`, as while something is applied or installed. */
    function removed({ store, host }: Booted, until: Promise<unknown>): void {
      const remove = host.removeGroup.bind(host);
      host.removeGroup = async (groupId, recorded) => {
        if (groupId === TARGET.rangeId) await until;
        await remove(groupId, recorded);
      };
      store.removeReplica({ rangeId: TARGET.rangeId, replicaId: 11, confVersion: 9 });
    }

    /** Right before the merge the target waits for what it reads. */
    function toMerge(target: RangeReplica): Promise<void> {
      const log = must(LOGS.get(TARGET.rangeId));
      const before = Array.from({ length: MERGE_AT - 1 }, () => [1, { type: 'noop' }] as const);
      const reads = logOf(TARGET.rangeId, [...before, [1, { type: 'kv', op: range('a', 'b') as never }]]).slice(-1);
      const behind = [...reads, ...log.slice(MERGE_AT - 1)].map((entry, i) => ({ ...entry, index: MERGE_AT + i }));
      return Promise.resolve(target.apply(behind, target.state.conf));
    }

    test('is there when that is in the middle of what leads to the merge', async () => {
      const booted = await startedNode(1);
      const target = must(replicaIn(booted, TARGET.rangeId));
      const applying = toMerge(target);
      expect(target.state.applied.index).toBe(MERGE_AT - 1);
      removed(booted, applying);
      booted.store.removeReplica(word);
      await applying;
      expect(target.state.merging.absorbed).toEqual([SOURCE.rangeId]);
      for (let i = 0; i < 300; i++) await turn();
      expect([...booted.store.replicas()]).toEqual([]);
      expect(await booted.engine.scan({ start: Buffer.from([1]), end: Buffer.from([5]) })).toEqual([]);
      expect(booted.failures).toEqual([]);
    });

    // The target runs again then, and its log goes on to the merge.
    test('is there after a crash that takes back the end of the target', async () => {
      const [world, logged] = [new CrashWorld(1), new Set<GroupId>()];
      const booted = await sealedNode(world, logged);
      await booted.store.start();
      removed(booted, new Promise(() => {}));
      booted.store.removeReplica(word);
      for (let i = 0; i < 300; i++) await turn();
      world.crash();
      const again = await boot(world, { logged });
      await again.store.start();
      await applyNext(must(replicaIn(again, TARGET.rangeId)), { sealed: true });
      expect(told(again)).toMatchObject([{ rangeId: TARGET.rangeId, merging: { absorbed: [SOURCE.rangeId] } }]);
    });

    test('leaves keys that nobody else gets before they are cleared away with those of the target', async () => {
      const booted = await startedNode(1);
      const applying = toMerge(must(replicaIn(booted, TARGET.rangeId)));
      let goes: () => void = () => {};
      const gone = new Promise<void>((resolve) => {
        goes = resolve;
      });
      removed(booted, gone);
      await applying;
      for (let i = 0; i < 300; i++) await turn(); // the source is gone
      const later = { ...SOURCE, rangeId: 9, start: kvRoutingKey(Buffer.from('x')), replicas: replicasOf(90) };
      await expect(booted.store.createReplica(later, 91)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
      goes();
      for (let i = 0; i < 300; i++) await turn();
      await booted.store.createReplica(later, 91);
      expect([...booted.store.replicas()].map(({ rangeId }) => rangeId)).toEqual([later.rangeId]);
      expect(booted.failures).toEqual([]);
    });
  });

  test('takes no snapshot in the place of its rows while the target here may still come to the merge', async () => {
    const other = await startedNode(2);
    const { meta, chunks } = must(replicaIn(other, SOURCE.rangeId)).snapshot();
    const bytes: Buffer[] = [];
    for await (const chunk of chunks) bytes.push(Buffer.from(chunk));
    const booted = await startedNode(1);
    const receiver = must(replicaIn(booted, SOURCE.rangeId)).install({ ...meta, index: meta.index });
    await expect(receiver.chunk(Buffer.concat(bytes))).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  });

  test('admits no change of its members, and once it has ended says where its keys are', async () => {
    const booted = await startedNode(1);
    const source = must(replicaIn(booted, SOURCE.rangeId));
    expect(
      source.admitsConf({ steps: [], joint: 'implicit', autoLeave: true, context: new Uint8Array(0) } as never),
    ).toBe(false);
    expect(source.context.unreadable()?.code).toBe('UNAVAILABLE');
    expect(
      source.watches.refusal({ epoch: SOURCE.epoch, span: { start: Buffer.from('x'), end: Buffer.from('y') } })?.code,
    ).toBe('UNAVAILABLE');
    await applyNext(must(replicaIn(booted, TARGET.rangeId)), { sealed: true });
    const moved = must(booted.store.merges.moved(SOURCE.rangeId));
    expect(currentRanges(moved)).toMatchObject([{ rangeId: TARGET.rangeId, epoch: { version: 2 } }]);
  });

  test('tells those who watch its keys how far they are as it ends: the target may be compacted above what was written there (W5)', async () => {
    const booted = await startedNode(1);
    const [source, target] = [SOURCE, TARGET].map(({ rangeId }) => must(replicaIn(booted, rangeId)));
    const told: string[] = [];
    const watch = (replica: RangeReplica | undefined, startRevision: number): void => {
      const stream = must(replica).watches.openStream({
        send: (message) => told.push(`${message.kind} ${'revision' in message ? message.revision : message.code}`) > 0,
      });
      const span = { start: Buffer.from('x'), end: Buffer.from('y') };
      const { rangeId, epoch } = must(replica).state.descriptor;
      const flags = { noPut: false, noDelete: false, prevKv: false };
      stream.create({ kind: 'create', watchId: 1, rangeId, epoch, span, startRevision, ...flags });
    };
    watch(source, REVISION + 1);
    Object.assign(must(target).state, { revision: 2_000, compactRevision: 1_900 });
    await applyNext(must(target), { sealed: true });
    expect(told.splice(0)).toEqual([`created ${REVISION}`, 'events 2000', 'ended STALE_EPOCH']);
    watch(target, 2_001);
    expect(told).toEqual(['created 2000']);
  });

  test.each([
    { name: 'are told where to ask once it has ended', unsealed: false, expected: ['STALE_EPOCH', 'STALE_EPOCH'] },
    { name: 'are executed once it is unsealed', unsealed: true, expected: ['NOT_LEADER', 'done'] },
  ])('holds what is asked of its leader: such requests $name (MR7)', async ({ unsealed, expected }) => {
    const booted = await startedNode(1);
    const source = must(replicaIn(booted, SOURCE.rangeId));
    source.roleChanged({ role: 'leader', term: 2, leader: 31 });
    await applyNext(source, { sealed: true }); // an entry of its own term: it serves
    const answers: string[] = [];
    const done = (error: { code: string } | undefined): void => void answers.push(error?.code ?? 'done');
    const asked = { rangeId: SOURCE.rangeId, epoch: SOURCE.epoch, requestId: '', authRevision: 0, deadlineMs: 0 };
    const query = { type: 'range', op: range('z'), serializable: false } as const; // no quorum confirms it here
    source.requests.execute({ ...asked, body: { kind: 'query', query, notBefore: 0 } }, () => {}, done);
    const lately = { type: 'range', op: range('z'), serializable: true } as const;
    source.requests.execute({ ...asked, body: { kind: 'query', query: lately, notBefore: 0 } }, () => {}, done);
    await turn();
    expect(answers).toEqual([]);
    const [unseal] = logOf(SOURCE.rangeId, [[1, { type: 'unseal', from: into }]]);
    const index = source.state.applied.index + 1;
    if (unsealed) await source.apply([{ ...must(unseal), index }], source.state.conf);
    else await applyNext(must(replicaIn(booted, TARGET.rangeId)), { sealed: true });
    await turn();
    expect(answers).toEqual(expected);
    booted.store.stop();
  });
});

/** A node that leads the target. */
async function leadingTarget(): Promise<{ booted: Booted; target: RangeReplica }> {
  const booted = await startedNode(1);
  const target = must(replicaIn(booted, TARGET.rangeId));
  Object.assign(target.group, {
    ready: true,
    status: () => ({ changePending: false, progress: [], conf: target.state.conf }),
  });
  target.roleChanged({ role: 'leader', term: 2, leader: 11 });
  const [noop] = logOf(TARGET.rangeId, [[1, { type: 'noop' }]]);
  await target.apply([{ ...must(noop), index: MERGE_AT }], target.state.conf); // an entry of its own term: it serves
  return { booted, target };
}

test('orders for the members of a range wait while a neighbour is being merged with it', async () => {
  const { booted } = await leadingTarget();
  const order = { rangeId: TARGET.rangeId, confVersion: 1 };
  const { heartbeat } = booted.store;
  heartbeat.carryOut({ ...order, orderId: 1, instruction: { type: 'merge', source: SOURCE, bytesMax: 0 } });
  heartbeat.carryOut({ ...order, orderId: 2, instruction: { type: 'demote', replicaId: 12 } });
  expect(heartbeat.report(true).results).toMatchObject([
    { orderId: 1, outcome: 'underWay' },
    { orderId: 2, outcome: 'underWay', reason: 'a neighbour is being merged with the range' },
  ]);
  booted.store.stop();
});

test('a range that has taken over as many as it may is told to take over no more: nothing is sealed for it', async () => {
  const { booted, target } = await leadingTarget();
  const absorbed = Array.from({ length: ABSORBED_MAX }, (_, i) => 1_000 + i);
  target.state.merging = { ...target.state.merging, absorbed };
  const { heartbeat } = booted.store;
  const instruction = { type: 'merge', source: SOURCE, bytesMax: 0 } as const;
  heartbeat.carryOut({ rangeId: TARGET.rangeId, confVersion: 1, orderId: 1, instruction });
  expect(heartbeat.report(true).results).toEqual([
    { orderId: 1, outcome: 'refused', reason: 'range 2 cannot be merged so: it has taken over 1000 ranges' },
  ]);
  expect(booted.store.merges.isMerging(TARGET.rangeId)).toBe(false);
  booted.store.stop();
});
