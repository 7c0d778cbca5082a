/**
 * The number of plain keys of a range, and the bytes of their keys and values. Every replica counts them with each
 * change.
 *
 * LN1. A split divides the counts as they were measured some time before, because nothing can be measured while entries
 *      are applied. A change since then may be counted in the wrong part. So the counts of both parts are estimates
 *      until a leader has recomputed them (range/stats/stats-recomputer.ts).
 * LN2. A recomputation adds a difference: the count of one moment less the field's value at that moment. The sum is
 *      right however much was written since. Only where a count would fall below 0 part of the difference is lost: the
 *      counts are estimates from there on.
 * LN3. Counts that are not marked as estimates are exact.
 */
import { type Command, type CommandResult, staleEpoch } from '@remora/protocol';
import type { RangeCounts, RangeProgress, RangeShape } from './range-fields.ts';

type Counted = RangeCounts & Pick<RangeProgress, 'applied'>;

/** Marks the counts as estimates from the entry on that is being applied. */
export function markEstimated(state: Pick<Counted, 'estimatedSince' | 'applied'>): void {
  state.estimatedSince = state.applied.index + 1;
}

export function count(state: Counted, { keys, bytes }: { readonly keys: number; readonly bytes: number }): void {
  state.keys += keys;
  state.bytes += bytes;
  if (state.keys >= 0 && state.bytes >= 0) return;
  state.keys = Math.max(0, state.keys);
  state.bytes = Math.max(0, state.bytes);
  markEstimated(state); // LN2
}

/** LN2. Fails when the range has been split or merged since it was counted. */
export function correctCounts(
  state: Counted & Pick<RangeShape, 'descriptor'>,
  command: Extract<Command, { readonly type: 'recount' }>,
): CommandResult {
  const { descriptor } = state;
  if (command.version !== descriptor.epoch.version) throw staleEpoch([descriptor]);
  if (state.estimatedSince <= command.index) state.estimatedSince = 0;
  count(state, command);
  return { type: 'recount' };
}
