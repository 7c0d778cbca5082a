/**
 * The effect of a split on a range, and the reasons to refuse it.
 *
 * SP1. Everything follows from the range's state and the command, alike on every replica.
 * SP2. The range keeps its id and what is before the place; the child gets the rest, under ids of its own, on the same
 *      nodes and in the same roles. Both get the next `version`, and from now on the master numbers their changes.
 * SP3. The membership is settled, and the ids were allocated for its nodes: the epoch proves that, because it changes
 *      with every membership change and every split or merge.
 * SP4. All replicas of the child begin behind the same position, as if they had applied one entry of term 1. Nobody
 *      campaigns in that term, so a leader that is not elected may use it (range/reshape/splits.ts S7).
 */
import { assert, compareBytes, type Engine, ServiceError, spanContains } from '@remora/base';
import { type Command, type CommandResult, type RangeDescriptor, staleEpoch } from '@remora/protocol';
import { type ConfState, isJoint, type LogPosition } from '@remora/raft';
import { boundsOf, isBorder } from '../bounds.ts';
import type { Effects } from '../effects.ts';
import { cutLeases } from '../leases/lease-split.ts';
import type { RangeMeta } from '../meta-codec.ts';
import type { RangeFields } from '../range-fields.ts';
import { markEstimated } from '../range-stats.ts';
import { NEVER_MERGED } from './merging.ts';

/** SP4. */
export const CHILD_BEGINS: LogPosition = { index: 1, term: 1 };

export type SplitCommand = Extract<Command, { type: 'split' }>;

interface SplitDescriptors {
  readonly left: RangeDescriptor;
  readonly right: RangeDescriptor;
}

/** The state that decides on splits of a range. */
interface Splittable {
  readonly descriptor: RangeDescriptor;
  readonly conf: ConfState;
}

/** Why the range cannot be split like this; undefined if it can. */
export function splitRefusal(command: SplitCommand, range: Splittable): ServiceError | undefined {
  const { descriptor } = range;
  const { version, confVersion } = descriptor.epoch;
  if (command.epoch.version !== version || command.epoch.confVersion !== confVersion) return staleEpoch([descriptor]);
  return placeRefusal(command.at, range) ?? wrongSplit(descriptor, misfit(descriptor, command));
}

/** Why the range cannot be split at this place now, whatever the ids; undefined if it can. */
export function placeRefusal(at: Uint8Array, { descriptor, conf }: Splittable): ServiceError | undefined {
  const { rangeId } = descriptor;
  if (isJoint(conf)) {
    return new ServiceError('UNAVAILABLE', `the membership of range ${rangeId} is being changed; split it afterwards`);
  }
  return wrongSplit(descriptor, misplaced(descriptor, at));
}

function wrongSplit({ rangeId }: RangeDescriptor, reason: string | undefined): ServiceError | undefined {
  return reason === undefined
    ? undefined
    : new ServiceError('INVALID_ARGUMENT', `range ${rangeId} cannot be split: ${reason}`);
}

function misplaced(descriptor: RangeDescriptor, at: Uint8Array): string | undefined {
  if (!spanContains(descriptor, at)) return 'the key is outside of it';
  if (compareBytes(at, descriptor.start) === 0) return 'it begins at that key already';
  return isBorder(at) ? undefined : 'the key is within the records of a lock or of a lease, or in no key space';
}

/** SP2: checks that the allocated ids fit the range. */
function misfit({ rangeId, replicas }: RangeDescriptor, command: SplitCommand): string | undefined {
  if (command.childId === rangeId) return 'the child needs an id of its own';
  const nodes = new Set(command.replicas.map(({ nodeId }) => nodeId));
  const ids = new Set([...command.replicas, ...replicas].map(({ replicaId }) => replicaId));
  const fits =
    command.replicas.length === replicas.length &&
    replicas.every(({ nodeId }) => nodes.has(nodeId)) &&
    ids.size === 2 * replicas.length;
  return fits ? undefined : 'there must be one new replica id for each of its nodes';
}

/** The child begins as the range was: with its revision, its time, and all remembered outcomes (design §7 ▸). */
export function split(
  range: RangeFields,
  command: SplitCommand,
  { engine, effects, term }: { readonly engine: Engine; readonly effects: Effects; readonly term: number },
): CommandResult {
  const refused = splitRefusal(command, range);
  if (refused !== undefined) throw refused;
  const { descriptor, rangeId, leases } = range;
  const { left, right } = splitDescriptors(descriptor, command);
  const meta = childMeta(range, command, right);
  const parts = { engine, rangeId, leases, references: range.references, transactions: range.transactions };
  const references = cutLeases({ ...parts, span: descriptor }, command.at, command.childId);
  range.descriptor = left;
  const transactions = range.transactions.cut(boundsOf(right));
  range.keys -= meta.keys;
  range.bytes -= meta.bytes;
  markEstimated(range);
  for (const id of leases.cut(range.bounds.routed)) effects.onLeaseEnded(id);
  const delays = range.delays.cut(range.bounds.routed);
  effects.onSplit({ meta, outcomes: range.outcomes.fork(rangeId), transactions, references, delays }, term);
  return { type: 'split', left, right };
}

/** SP2. */
function splitDescriptors(descriptor: RangeDescriptor, command: SplitCommand): SplitDescriptors {
  const { at, childId } = command;
  const epoch = { ...descriptor.epoch, version: descriptor.epoch.version + 1 };
  const both = { ...descriptor, epoch, revisionSource: 'master' } as const;
  const idAt = childReplicaIds(descriptor, command);
  const replicas = descriptor.replicas.map((replica) => ({ ...replica, replicaId: idAt(replica.replicaId) }));
  const border = Buffer.from(at); // The command's key is a slice of a log entry.
  return { left: { ...both, end: border }, right: { ...both, rangeId: childId, start: border, replicas } };
}

/** The child begins with the range's revision and time, and a log of its own. */
function childMeta(range: RangeFields, command: SplitCommand, right: RangeDescriptor): RangeMeta {
  const { revision, compactRevision, rangeTimeMs, wallMs, conf, descriptor } = range;
  return {
    applied: CHILD_BEGINS,
    appliedAhead: 0,
    conf: childConf(descriptor, command, conf),
    descriptor: right,
    ...{ revision, compactRevision, rangeTimeMs, wallMs },
    keys: Math.min(command.keys, range.keys),
    bytes: Math.min(command.bytes, range.bytes),
    estimatedSince: CHILD_BEGINS.index,
    merging: NEVER_MERGED,
  };
}

/** The child's membership: the range's own, under the new ids. */
function childConf(descriptor: RangeDescriptor, command: SplitCommand, conf: ConfState): ConfState {
  const idAt = childReplicaIds(descriptor, command);
  return {
    voters: conf.voters.map(idAt),
    votersOutgoing: [],
    learners: conf.learners.map(idAt),
    learnersNext: [],
    autoLeave: false,
  };
}

function childReplicaIds({ replicas }: RangeDescriptor, command: SplitCommand): (replicaId: number) => number {
  const byNode = new Map(command.replicas.map(({ nodeId, replicaId }) => [nodeId, replicaId]));
  const ids = new Map(replicas.map(({ nodeId, replicaId }) => [replicaId, byNode.get(nodeId)]));
  return (replicaId) => {
    const id = ids.get(replicaId);
    assert(id !== undefined, `replica ${replicaId} has a counterpart in the child`);
    return id;
  };
}
