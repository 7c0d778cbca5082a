/** One run: load, faults and the checks at the end, all from one seed. */
import { assert } from '@remora/base';
import { type CommandResult, KV_SPACE, type KvEvent, type QueryResult } from '@remora/protocol';
import { DATA_NODES, GATEWAY_NODE, NODES, RangeCluster, type RangePlan, replicaIdOn } from './bed.ts';
import { KvLoad } from './kv-load.ts';
import { LeaseLoad } from './lease-load.ts';
import { LockLoad } from './lock-load.ts';
import { Truth } from './truth.ts';
import { TxnLoad } from './txn-load.ts';
import { WatchLoad } from './watch-load.ts';

export interface RunResult {
  readonly faults: readonly string[];
  readonly events: number;
  readonly acknowledged: number;
  readonly granted: number;
  /** Requests whose outcome their clients never learned. */
  readonly unknown: number;
  readonly snapshots: number;
  /** Snapshots whose installation a crash interrupted. */
  readonly resumed: number;
  readonly splits: number;
  readonly merges: number;
  /** … that parted a range with a prepared transaction. */
  readonly splitsAmidTransactions: number;
  /** Transactions over lists that were acknowledged. */
  readonly committed: number;
  /** Coordinators that ended, by the message that was their last. */
  readonly kills: ReadonlyMap<string, number>;
  /** Keys put with leases, and leases revoked. */
  readonly attached: number;
  readonly revoked: number;
}

const LOAD_MS = 6_000;
/** Leases, locks, keys and their history: all that replicas have in common. */
const DATA_SPAN = { start: Buffer.from([1]), end: Buffer.from([5]) };

const PLAIN_KEYS = { start: Buffer.from([KV_SPACE]), end: Buffer.from([KV_SPACE + 1]) };

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

export async function runSeed(seed: number, plan?: RangePlan): Promise<RunResult> {
  const bed = new RangeCluster(seed, plan);
  await bed.start();
  const startMs = bed.clock.monotonicMs();
  const untilMs = startMs + LOAD_MS;
  const kv = new KvLoad(bed, { oneKeyWrites: plan?.leases ?? false });
  const watches = new WatchLoad(bed);
  const locks = new LockLoad(bed);
  for (let i = 0; i < 5; i++) kv.client(untilMs);
  for (let i = 0; i < 4; i++) locks.client(untilMs);
  const leases = new LeaseLoad(bed);
  for (let i = 0; i < (plan?.leases ? 4 : 0); i++) leases.client(untilMs);
  for (let i = 0; i < 3; i++) watches.begin(GATEWAY_NODE, untilMs);
  for (const id of DATA_NODES) watches.begin(id, untilMs);
  const lists = plan?.transactions ? new TxnLoad(bed) : undefined;
  for (let i = 0; i < 5; i++) lists?.client(untilMs);
  const split = () => (lists === undefined ? bed.splitSomewhere() : bed.splitAmidTransaction());
  for (const _key of plan?.splits ?? []) {
    for (let i = 0; i < 5; i++) bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), split);
  }
  for (let i = 0; i < (plan?.merges ?? 0); i++) {
    bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.mergeSomewhere());
  }
  await misfortune(bed, untilMs, () => watches.begin(GATEWAY_NODE, untilMs));
  await recover(bed);
  const truth = new Truth(await history(bed));
  watches.askProgress();
  await bed.run(2_500);
  const checked = [kv.check(truth), locks.check(), watches.check(truth), lists?.check() ?? [], await leftovers(bed)];
  const faults = checked.flat();
  faults.push(...leases.check(await plainKeys(bed)));
  const acknowledged = kv.observations.filter((seen) => seen.reply !== undefined).length;
  const unknown = kv.observations.filter((seen) => seen.error?.code === 'UNKNOWN_OUTCOME').length;
  const snapshots = DATA_NODES.reduce(
    (sum, id) => sum + (bed.node(id).running?.host?.stats().snapshotsReceived ?? 0),
    0,
  );
  return {
    faults,
    events: truth.events.length,
    acknowledged,
    granted: locks.granted,
    unknown,
    snapshots,
    resumed: bed.resumed,
    splits: bed.splits,
    attached: leases.attached,
    revoked: leases.revoked,
    merges: bed.merged,
    splitsAmidTransactions: bed.splitsAmidTransactions,
    committed: lists?.committed ?? 0,
    kills: bed.kills,
  };
}

/** Crashes, pauses, partitions and broken links, one after another. */
async function misfortune(bed: RangeCluster, untilMs: number, newWatch: () => void): Promise<void> {
  const { random, clock } = bed;
  while (clock.monotonicMs() < untilMs) {
    await pass(bed, 50 + random.int(400));
    const victim = target(bed);
    const lastsMs = 50 + random.int(1_200);
    switch (random.int(6)) {
      case 0:
        await bed.crash(victim);
        await bed.run(lastsMs);
        if (bed.node(victim).running === undefined) bed.startNode(victim);
        break;
      case 1:
        bed.pause(victim);
        await bed.run(lastsMs);
        bed.resume(victim);
        break;
      case 2:
        bed.partition(random.int(2) === 0 ? [victim] : [victim, GATEWAY_NODE]);
        await bed.run(lastsMs);
        bed.heal();
        break;
      case 3:
        bed.breakSomeLink();
        break;
      case 4:
        transfer(bed);
        break;
      default:
        newWatch();
    }
  }
}

/** Lets time pass. A node that installs a snapshot then may die of it, and again while its next life goes on with it. */
async function pass(bed: RangeCluster, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10) {
    await bed.run(Math.min(10, left));
    const id = DATA_NODES.find((node) => bed.node(node).engine.rebuilding);
    if (id === undefined || bed.node(id).running === undefined || bed.laterRandom.int(8) > 0) continue;
    await bed.crash(id);
    await bed.run(bed.laterRandom.int(300));
    if (bed.node(id).running === undefined) bed.startNode(id);
  }
}

/** The leader more often than not: what happens to it matters most. */
function target(bed: RangeCluster): number {
  const leader = bed.leaders()[0];
  if (leader !== undefined && bed.random.int(3) > 0) return leader;
  return NODES[bed.random.int(NODES.length)] ?? 1;
}

function transfer(bed: RangeCluster): void {
  const { ranges } = bed.view;
  const rangeId = ranges.length === 1 ? 2 : (ranges[bed.laterRandom.int(ranges.length)]?.rangeId ?? 2);
  const leader = bed.leaders(rangeId)[0];
  if (leader === undefined) return;
  const to = DATA_NODES[bed.random.int(DATA_NODES.length)] ?? 1;
  bed.node(leader).running?.host?.group(rangeId)?.transferLeader(replicaIdOn(to, rangeId));
}

async function recover(bed: RangeCluster): Promise<void> {
  bed.heal();
  if (bed.view.ranges.length > 1 || bed.mayMerge) {
    for (let i = 0; i < 20; i++) {
      bed.removeEnded();
      void bed.createMissing();
      await bed.run(200);
    }
  }
  await bed.run(6_000);
  for (const { rangeId } of bed.view.ranges) {
    const leaders = bed.leaders(rangeId);
    assert(leaders.length === 1, `range ${rangeId} of a healed cluster has one leader, not ${leaders.join()}`);
  }
}

/** All that ever happened to the keys, from the history of each range's leader. */
async function history(bed: RangeCluster): Promise<readonly KvEvent[]> {
  const starts = bed.view.ranges.map(({ start }) => Buffer.from(start)).filter(([space]) => space === KV_SPACE);
  const borders = starts.map((start) => start.subarray(1));
  const keys = [Buffer.from('k'), ...borders, Buffer.from('l')];
  const parts = keys.slice(0, -1).map((key, i) => rangeHistory(bed, key, keys[i + 1] ?? key));
  await bed.run(2_500);
  return parts.flatMap((events) => events()).sort((a, b) => a.kv.modRevision - b.kv.modRevision);
}

function rangeHistory(bed: RangeCluster, key: Buffer, end: Buffer): () => readonly KvEvent[] {
  const found: KvEvent[] = [];
  let upTo = 0;
  const control = bed.node(GATEWAY_NODE).running?.backend.watch(
    { key, end, startRevision: 1, noPut: false, noDelete: false, prevKv: false },
    {
      onCreated: () => undefined,
      onEvents: (events, revision) => {
        for (const event of events) found.push(event);
        upTo = revision;
      },
      onEnd: (error) => {
        throw error;
      },
    },
  );
  const insist = (tries: number): void => {
    if (upTo > 0 || tries === 0) return;
    control?.progress();
    bed.clock.setTimer(100, () => insist(tries - 1));
  };
  bed.clock.setTimer(100, () => insist(20));
  return () => {
    control?.cancel();
    return found;
  };
}

async function ask(
  bed: RangeCluster,
  query: { readonly type: 'leases' },
): Promise<CommandResult | QueryResult | undefined> {
  let answer: QueryResult | undefined;
  bed.node(GATEWAY_NODE).running?.backend.query(query, { timeoutMs: 2_000 }, (_error, reply) => {
    answer = reply?.result;
  });
  await bed.run(2_500);
  return answer;
}

/** As a node has them, when all have the same. */
async function plainKeys(bed: RangeCluster): Promise<readonly string[]> {
  const rows = await bed.node(1).engine.scan(PLAIN_KEYS);
  return rows.map(({ key }) => Buffer.from(key.subarray(1)).toString());
}

/** What nobody renews is gone in the end; replicas agree. */
async function leftovers(bed: RangeCluster): Promise<readonly string[]> {
  const faults: string[] = [];
  const leases = await ask(bed, { type: 'leases' });
  if (leases?.type !== 'leases') faults.push('a healed cluster did not answer a query');
  else if (leases.ids.length > 0) faults.push(`leases ${leases.ids.join()} never expired`);
  const states = DATA_NODES.map((id) =>
    [...(bed.node(id).running?.store?.replicas() ?? [])]
      .map(({ state }) => [state.rangeId, state.revision, state.keys, state.bytes, state.applied, state.rangeTimeMs])
      .map((each) => JSON.stringify(each))
      .sort()
      .join(),
  );
  const rows = await Promise.all(DATA_NODES.map((id) => bed.node(id).engine.scan(DATA_SPAN)));
  const contents = rows.map((all) => all.map(({ key, value }) => `${hex(key)}=${hex(value)}`).join(' '));
  for (const id of DATA_NODES) {
    for (const { state } of bed.node(id).running?.store?.replicas() ?? []) {
      const { parts, records } = state.transactions;
      for (const { txnId } of [...parts, ...records])
        faults.push(`transaction ${txnId} is left in range ${state.rangeId}`);
      if (state.references.size > 0) faults.push(`range ${state.rangeId} refers to leases that are gone`);
      if ([...state.leases.allEnding()].length > 0) faults.push(`leases of range ${state.rangeId} never ended`);
    }
  }
  if (new Set(contents).size !== 1) faults.push('replicas hold different rows');
  if (new Set(states).size !== 1) faults.push(`replicas differ: ${states.join(' / ')}`);
  return faults;
}
