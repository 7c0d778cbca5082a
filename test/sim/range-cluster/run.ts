/** One run: load, faults and the checks at the end, all from one seed. */
import { type CommandResult, KV_SPACE, type QueryResult } from '@remora/protocol';
import { GATEWAY_NODE, RangeCluster, type RangePlan } from './bed.ts';
import { keyHistory } from './key-history.ts';
import { KvLoad } from './kv-load.ts';
import { LeaseLoad } from './lease-load.ts';
import { LockLoad } from './lock-load.ts';
import { misfortune, recover } from './misfortune.ts';
import { checkReplicas } from './replica-check.ts';
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
  /** Splits of a range that had a prepared transaction. */
  readonly splitsAmidTransactions: number;
  /** Acknowledged transactions over lists. */
  readonly committed: number;
  /** Transactions that could change a key twice, and were refused. */
  readonly refused: number;
  /** Coordinators that ended, by their last message. */
  readonly kills: ReadonlyMap<string, number>;
  /** Replicas that moved to another node. Then those whose range had a prepared transaction meanwhile. */
  readonly moves: number;
  readonly movesAmidTransactions: number;
  /** The faults of the nodes, by kind (misfortune.ts). */
  readonly misfortunes: ReadonlyMap<string, number>;
  readonly simulatedMs: number;
  /** Keys put with leases. Then revoked leases. */
  readonly attached: number;
  /** Transactions that repeat puts of keys with their current leases. */
  readonly kept: number;
  readonly revoked: number;
}

const LOAD_MS = 6_000;
const PLAIN_KEYS = { start: Buffer.from([KV_SPACE]), end: Buffer.from([KV_SPACE + 1]) };

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
  for (const id of bed.dataNodes) watches.begin(id, untilMs);
  const lists = plan?.transactions ? new TxnLoad(bed) : undefined;
  for (let i = 0; i < 5; i++) lists?.client(untilMs);
  const split = () => (lists === undefined ? bed.ranges.splitSomewhere() : bed.ranges.splitAmidTransaction());
  for (const _key of plan?.splits ?? []) {
    for (let i = 0; i < 5; i++) bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), split);
  }
  for (let i = 0; i < (plan?.merges ?? 0); i++) {
    bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.mergeSomewhere());
  }
  for (let i = 0; i < (plan?.moves ?? 0); i++) {
    bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.moveSomething());
  }
  await misfortune(bed, untilMs, () => watches.begin(GATEWAY_NODE, untilMs));
  await recover(bed);
  const truth = new Truth(await keyHistory(bed, GATEWAY_NODE, { start: 'k', end: 'l' }));
  watches.askProgress();
  await bed.run(2_500);
  const checked = [kv.check(truth), locks.check(), watches.check(truth), lists?.check() ?? [], await leasesLeft(bed)];
  const faults = checked.flat();
  faults.push(...(await checkReplicas(bed)));
  faults.push(...leases.check(await plainKeys(bed)));
  const acknowledged = kv.observations.filter((seen) => seen.reply !== undefined).length;
  const unknown = kv.observations.filter((seen) => seen.error?.code === 'UNKNOWN_OUTCOME').length;
  const snapshots = bed.dataNodes.reduce(
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
    splits: bed.ranges.splits,
    attached: leases.attached,
    kept: leases.kept,
    revoked: leases.revoked,
    merges: bed.ranges.merged,
    splitsAmidTransactions: bed.ranges.splitsAmidTransactions,
    committed: lists?.committed ?? 0,
    refused: lists?.refused ?? 0,
    kills: bed.kills,
    moves: bed.ranges.moves.moved,
    movesAmidTransactions: bed.ranges.moves.amidTransactions,
    misfortunes: bed.misfortunes,
    simulatedMs: bed.clock.monotonicMs(),
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

/** The keys of one node, if all nodes have the same. */
async function plainKeys(bed: RangeCluster): Promise<readonly string[]> {
  const rows = await bed.node(1).engine.scan(PLAIN_KEYS);
  return rows.map(({ key }) => Buffer.from(key.subarray(1)).toString());
}

/** Leases that are not renewed must be gone in the end. */
async function leasesLeft(bed: RangeCluster): Promise<readonly string[]> {
  const leases = await ask(bed, { type: 'leases' });
  if (leases?.type !== 'leases') return ['a healed cluster did not answer a query'];
  return leases.ids.length > 0 ? [`leases ${leases.ids.join()} never expired`] : [];
}
