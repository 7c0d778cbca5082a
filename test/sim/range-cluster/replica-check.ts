/**
 * Checks the replicas after all faults have ended.
 *
 * RC1. Every member of a range has a replica of it, and no other node has one. Replicas at the same position of the log
 *      have the same state, rows and remembered outcomes.
 * RC2. A node has no rows other than those of its replicas.
 * RC3. Nothing is left of transactions and of leases.
 */
import type { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';
import { encodeOutcomePage } from '../../../packages/dataserver/src/state/outcomes/outcome-codec.ts';
import type { RangeState } from '../../../packages/dataserver/src/state/range-state.ts';
import type { RangeCluster } from './bed.ts';
import { replicaAt, rowsOf } from './two-sides.ts';

/** Leases, locks, keys and their history. */
const DATA_SPAN = { start: Buffer.from([1]), end: Buffer.from([5]) };
/** The time of an idle range advances by an occasional entry, which may be on its way during a check. */
const LOOKS = 100;
const LOOK_MS = 20;

export async function checkReplicas(bed: RangeCluster): Promise<readonly string[]> {
  for (let i = 0; i < LOOKS && replicasOf(bed).some((replicas) => !areLevel(replicas)); i++) await bed.run(LOOK_MS);
  const byRange = replicasOf(bed);
  const faults = [...membersWithout(bed), ...byRange.flatMap(differing), ...byRange.flat().flatMap(leftIn)];
  return [...faults, ...(await differingRows(bed))];
}

/** The replicas of each range, on all nodes. */
function replicasOf(bed: RangeCluster): readonly (readonly RangeReplica[])[] {
  const byRange = new Map<number, RangeReplica[]>();
  for (const nodeId of bed.dataNodes) {
    for (const replica of bed.node(nodeId).running?.store?.replicas() ?? []) {
      byRange.set(replica.rangeId, [...(byRange.get(replica.rangeId) ?? []), replica]);
    }
  }
  return [...byRange.values()];
}

function areLevel(replicas: readonly RangeReplica[]): boolean {
  return new Set(replicas.map(({ state }) => state.applied.index)).size === 1;
}

/** RC1. */
function membersWithout(bed: RangeCluster): readonly string[] {
  const faults: string[] = [];
  for (const { rangeId, replicas } of bed.view.ranges) {
    const has = bed.dataNodes.filter((nodeId) =>
      [...(bed.node(nodeId).running?.store?.replicas() ?? [])].some((replica) => replica.rangeId === rangeId),
    );
    const should = replicas.map(({ nodeId }) => nodeId).sort((a, b) => a - b);
    if (has.join() !== should.join()) {
      faults.push(`range ${rangeId} has replicas on nodes ${has.join()}, and its members are on ${should.join()}`);
    }
  }
  return faults;
}

/** RC1. */
function differing(replicas: readonly RangeReplica[]): readonly string[] {
  const [first, ...others] = replicas.map(({ state }) => stateLines(state));
  return others.flatMap((lines) => {
    const at = lines.findIndex((line, i) => line !== first?.[i]);
    const same = at < 0 && lines.length === first?.length;
    return same ? [] : [`replicas differ: ${first?.at(at) ?? 'nothing'} / ${lines.at(at) ?? 'nothing'}`];
  });
}

/** What must be equal: first the numbers, then everything that is remembered. */
function stateLines(state: RangeState): readonly string[] {
  const { rangeId, revision, compactRevision, keys, bytes, estimatedSince, applied, rangeTimeMs, merging, outcomes } =
    state;
  const remembered = [...outcomes.askable(rangeTimeMs)].map(
    (entry) => `range ${rangeId} remembers ${entry.requestId} as ${encodeOutcomePage([entry]).toString('hex')}`,
  );
  const numbers = { rangeId, revision, compactRevision, keys, bytes, estimatedSince, applied, rangeTimeMs, merging };
  return [JSON.stringify({ ...numbers, remembered: remembered.length }), ...remembered];
}

/** RC3. */
function leftIn({ state }: RangeReplica): readonly string[] {
  const { parts, records } = state.transactions;
  const faults = [...parts, ...records].map(({ txnId }) => `transaction ${txnId} is left in range ${state.rangeId}`);
  if (state.references.size > 0) faults.push(`range ${state.rangeId} refers to leases that are gone`);
  if ([...state.leases.allEnding()].length > 0) faults.push(`leases of range ${state.rangeId} never ended`);
  return faults;
}

/** RC1, RC2. */
async function differingRows(bed: RangeCluster): Promise<readonly string[]> {
  const faults: string[] = [];
  const counted = new Map<number, number>();
  for (const { rangeId, replicas } of bed.view.ranges) {
    const contents = new Set<string>();
    for (const { nodeId } of replicas) {
      if (replicaAt(bed, nodeId, rangeId) === undefined) continue;
      const rows = await rowsOf(bed, nodeId, rangeId);
      counted.set(nodeId, (counted.get(nodeId) ?? 0) + rows.length);
      contents.add(rows.map(({ key, value }) => `${hex(key)}=${hex(value)}`).join(' '));
    }
    if (contents.size > 1) faults.push(`replicas of range ${rangeId} hold different rows`);
  }
  for (const nodeId of bed.dataNodes) {
    const all = (await bed.node(nodeId).engine.scan(DATA_SPAN)).length;
    const own = counted.get(nodeId) ?? 0;
    if (all !== own) faults.push(`node ${nodeId} has ${all} rows, and its replicas ${own}`);
  }
  return faults;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
