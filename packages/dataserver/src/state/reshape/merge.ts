/**
 * The effect of the steps of a merge on the two ranges (range/reshape/merges.ts has the protocol, and its rules MR1 to
 * MR8).
 *
 * MG1. From its seal until its end, or until it is unsealed, a source does not change anything that a merge takes over:
 *      it refuses every command, and its time and its members stand still. Entries only move its position. So all
 *      replicas that have applied the seal have the same data, however much more of the log they have applied. There is
 *      one exception: a replica that goes on alone, because the target lost its majority together with the source. Its
 *      revisions are far above the sealed ones, and so are the target's after the merge.
 * MG2. A merge is applied only if the target is still as it was when its replicas were compared with the source's, only
 *      in the round for which the source was sealed, and only if the two do not know different incarnations of one
 *      lease (lease-ownership.ts BL2). Any other merge is refused and decides nothing. A source that has gone on alone
 *      is taken over all the same: the other replicas that decided on it are gone, and the masters know that.
 * MG3. The target continues with the data of both: the last revision, the compaction and the time are the later ones,
 *      remembered outcomes are those of both, and its version is above both (the ranges of a key have growing
 *      versions).
 * MG4. The source is the range behind the target: of two neighbours the first one continues. So a range has the key at
 *      which it begins for as long as it lives. If another range has that key, the range has ended.
 * MG5. The merge may move the time of either range forward, so waits with a time-out may end early, and commands past
 *      their deadline are refused. No command is applied twice: the deadline of a forgotten outcome has passed here
 *      too.
 */
import { assert, equalBytes, ServiceError } from '@remora/base';
import {
  type Command,
  type CommandResult,
  type Epoch,
  type RangeDescriptor,
  type SealedRange,
  staleEpoch,
} from '@remora/protocol';
import { isJoint } from '@remora/raft';
import type { Effects } from '../effects.ts';
import type { Lease } from '../leases/leases.ts';
import type { RangeFields, RangeLeases, RangeProgress, RangeShape } from '../range-fields.ts';
import { markEstimated } from '../range-stats.ts';
import { ABSORBED_MAX, isSameRound } from './merging.ts';

type SealCommand = Extract<Command, { type: 'seal' }>;
type UnsealCommand = Extract<Command, { type: 'unseal' }>;
type MergeIntoCommand = Extract<Command, { type: 'merge' }>;

/** Why a sealed range refuses a request. */
export function sealedRefusal({ rangeId }: { readonly rangeId: number }): ServiceError {
  return new ServiceError('UNAVAILABLE', `range ${rangeId} is being merged with its neighbour; try again soon`);
}

/** Whether a sealed range applies the command all the same (MG1). */
export function passesSeal({ type }: Command): boolean {
  return type === 'seal' || type === 'unseal' || type === 'refuseMerge';
}

// ---------------------------------------------------------------------------------------------- the source

/** Why the range cannot be sealed like this; undefined if it can, or is sealed already. */
export function sealRefusal(
  state: Readonly<RangeShape>,
  { epoch, into }: Pick<SealCommand, 'epoch' | 'into'>,
): ServiceError | undefined {
  const { descriptor, conf, merging } = state;
  const { rangeId } = descriptor;
  if (merging.seal !== undefined) return isSameRound(merging.seal, into) ? undefined : sealedRefusal({ rangeId });
  if (!isSameEpoch(epoch, descriptor.epoch)) return staleEpoch([descriptor]);
  if (isJoint(conf)) return unavailable(`the membership of range ${rangeId} is being changed; merge it afterwards`);
  if (descriptor.revisionSource === 'master' && into.targetId !== rangeId) return undefined;
  return impossible(rangeId, 'it has no neighbour to be merged with');
}

/** `index`: of the entry. */
export function seal(state: RangeFields, command: SealCommand, index: number): CommandResult {
  const refused = sealRefusal(state, command);
  if (refused !== undefined) throw refused;
  if (state.merging.seal === undefined) state.merging = { ...state.merging, seal: { ...command.into, index } };
  const sealed = sealedRange(state);
  assert(sealed !== undefined, 'it is sealed now');
  return { type: 'seal', sealed };
}

/** Describes a sealed range for a merge; undefined if the range is not sealed. */
function sealedRange(state: Readonly<RangeShape & Pick<RangeProgress, 'revision'>>): SealedRange | undefined {
  const { descriptor, merging, revision } = state;
  return merging.seal && { descriptor, index: merging.seal.index, revision };
}

/** Refuses if the range is sealed for another round: a late unseal belongs to a round that is over. */
export function unseal(state: RangeFields, { from }: UnsealCommand): CommandResult {
  const { seal: sealed } = state.merging;
  if (sealed === undefined || !isSameRound(sealed, from)) {
    throw impossible(state.rangeId, `it is not sealed for round ${from.round} of range ${from.targetId}`);
  }
  state.merging = { ...state.merging, seal: undefined };
  return { type: 'unseal' };
}

// ---------------------------------------------------------------------------------------------- the target

/** Ends a round without a merge, once. */
export function refuseMerge(state: RangeFields, round: number): CommandResult {
  if (state.merging.round !== round) throw decided(state, round);
  state.merging = { ...state.merging, round: round + 1 };
  return { type: 'refuseMerge' };
}

/** MG2: why the source cannot be taken over; undefined if it can. */
function mergeRefusal(
  state: Readonly<RangeShape>,
  { epoch, round, source }: Pick<MergeIntoCommand, 'epoch' | 'round' | 'source'>,
): ServiceError | undefined {
  const { descriptor, conf, merging } = state;
  const { rangeId } = descriptor;
  if (merging.round !== round) return decided(state, round);
  if (!isSameEpoch(epoch, descriptor.epoch)) return staleEpoch([descriptor]);
  if (merging.seal !== undefined) return sealedRefusal({ rangeId });
  if (isJoint(conf)) return unavailable(`the membership of range ${rangeId} is being changed; merge it afterwards`);
  const wrong = misfit(descriptor, source.descriptor);
  if (wrong !== undefined) return impossible(rangeId, wrong);
  return fullRefusal(state);
}

/** Why a range may not take over further ranges; undefined if it may. */
export function fullRefusal({ descriptor, merging }: Readonly<RangeShape>): ServiceError | undefined {
  if (merging.absorbed.length < ABSORBED_MAX) return undefined;
  return impossible(descriptor.rangeId, `it has taken over ${ABSORBED_MAX} ranges`);
}

/** MG2: why two ranges with different incarnations of a lease are not merged; undefined if they may be. */
export function leaseConflict(
  target: Readonly<RangeShape & RangeLeases>,
  source: Readonly<RangeShape & RangeLeases>,
): ServiceError | undefined {
  const id = target.leaseOwnership.conflictWith(source.leaseOwnership);
  if (id === undefined) return undefined;
  const why = `one of them has something of an earlier lease ${id} than the other`;
  return unavailable(`ranges ${target.rangeId} and ${source.rangeId} cannot be merged yet: ${why}; try again later`);
}

/** Whether all replicas have the same data of the source: it has not gone on alone (MG1). */
function isAsSealed(source: Pick<RangeProgress, 'revision'>, { source: named }: MergeIntoCommand): boolean {
  return source.revision === named.revision;
}

/** Why two ranges cannot be merged as they are; undefined when they can. */
export function misfit(target: RangeDescriptor, source: RangeDescriptor): string | undefined {
  if (unionOf(target, source) === undefined) return `range ${source.rangeId} does not begin where it ends`;
  if (target.revisionSource !== 'master' || source.revisionSource !== 'master') return 'it counts its revisions itself';
  const nodes = nodesOf(target);
  const fits =
    target.replicas.length === source.replicas.length && nodesOf(source).every((node) => nodes.includes(node));
  return fits ? undefined : `range ${source.rangeId} has its replicas on nodes ${nodesOf(source)}, it on ${nodes}`;
}

/** The descriptor of the target with the keys of both (MG3); undefined when the source is not behind it (MG4). */
export function unionOf(target: RangeDescriptor, source: RangeDescriptor): RangeDescriptor | undefined {
  // An empty end is behind all keys.
  if (target.end.length === 0 || !equalBytes(target.end, source.start)) return undefined;
  const version = Math.max(target.epoch.version, source.epoch.version) + 1;
  return { ...target, end: source.end, epoch: { ...target.epoch, version } };
}

/**
 * Takes over the sealed source. Its rows already lie between the target's; with the source's bounds they become the
 * target's.
 */
export function mergeInto(state: RangeFields, command: MergeIntoCommand, effects: Effects): CommandResult {
  const refused = mergeRefusal(state, command);
  if (refused !== undefined) throw refused;
  const source = effects.source(command.source.descriptor.rangeId);
  const conflict = isAsSealed(source, command) ? leaseConflict(state, source) : undefined;
  if (conflict !== undefined) throw conflict;
  const leases = unite(state, source, command);
  const delayed = [...source.delays.all()];
  state.delays.takeOver(delayed);
  effects.onMerged(source.rangeId);
  for (const lease of leases) effects.onLeaseGranted(lease);
  for (const hold of delayed) effects.onHoldDelayed(hold);
  return { type: 'merge', range: state.descriptor };
}

/** Takes over the data of a sealed source on this node; returns the leases that came with it. */
function unite(state: RangeFields, source: Readonly<RangeFields>, command: MergeIntoCommand): readonly Lease[] {
  const sealed = sealedRange(source);
  const named = command.source;
  const { seal: round } = source.merging;
  assert(
    round !== undefined && isSameRound(round, { targetId: state.rangeId, round: command.round }),
    'MG2: it was sealed for this round',
  );
  assert(sealed?.index === named.index && sealed.revision >= named.revision, 'MG1: all replicas have what was sealed');
  const union = unionOf(state.descriptor, source.descriptor);
  assert(union !== undefined, 'MG2: they are neighbours');
  const { absorbed } = state.merging;
  state.descriptor = union;
  state.revision = Math.max(state.revision, source.revision);
  state.compactRevision = Math.max(state.compactRevision, source.compactRevision);
  const aheadMs = Math.max(0, state.rangeTimeMs - source.rangeTimeMs);
  state.outcomes.unite(source.outcomes, { ownMs: state.rangeTimeMs, otherMs: source.rangeTimeMs });
  state.transactions.takeOver(source.transactions.handedOver(aheadMs));
  state.rangeTimeMs = Math.max(state.rangeTimeMs, source.rangeTimeMs);
  state.keys += source.keys;
  state.bytes += source.bytes;
  if (source.estimatedSince > 0) markEstimated(state);
  const ids = [...absorbed, source.rangeId, ...source.merging.absorbed];
  state.merging = { ...state.merging, round: command.round + 1, absorbed: ids };
  state.references.absorb(source.rangeId);
  return state.leases.take(source.bounds.routed);
}

/**
 * The source without its keys, which the target has now. The source's last state records that, so that its removal
 * deletes nothing of the target's.
 */
export function withoutKeys(descriptor: RangeDescriptor): RangeDescriptor {
  assert(descriptor.start.length > 0, 'MG4: the first range is the source of no merge');
  return { ...descriptor, end: descriptor.start };
}

function nodesOf({ replicas }: RangeDescriptor): readonly number[] {
  return replicas.map(({ nodeId }) => nodeId).sort((a, b) => a - b);
}

function isSameEpoch(a: Epoch, b: Epoch): boolean {
  return a.confVersion === b.confVersion && a.version === b.version;
}

function decided({ descriptor, merging }: Readonly<RangeShape>, round: number): ServiceError {
  return impossible(descriptor.rangeId, `round ${round} is decided, or yet to come: it is at round ${merging.round}`);
}

function unavailable(message: string): ServiceError {
  return new ServiceError('UNAVAILABLE', message);
}

function impossible(rangeId: number, why: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `range ${rangeId} cannot be merged so: ${why}`);
}
