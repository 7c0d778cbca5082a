/**
 * How many plain keys a range has now, and how many bytes of keys and values: counted with each change, by every replica
 * alike.
 *
 * LN1. A split divides what was counted as it was measured some time before, as nobody can measure while entries are
 *      applied: what changed meanwhile may be counted in the wrong part. So the counts of both parts are in doubt, until a
 *      leader has counted anew (range/stats/stats-recomputer.ts).
 * LN2. What was counted in one moment, less what stood here in that moment, is what has to be added, however much is
 *      written since. Only where a count would fall below 0 something of it is lost: it is in doubt from there on.
 * LN3. What is not in doubt is exact.
 */
import { type Command, type CommandResult, staleEpoch } from '@remora/protocol';
import type { RangeState } from './range-state.ts';

type Counted = Pick<RangeState, 'keys' | 'bytes' | 'doubtAt' | 'applied' | 'descriptor'>;

/** The counts are in doubt since the entry that is being applied. */
export function doubt(state: Pick<Counted, 'doubtAt' | 'applied'>): void {
  state.doubtAt = state.applied.index + 1;
}

export function count(state: Counted, { keys, bytes }: { readonly keys: number; readonly bytes: number }): void {
  state.keys += keys;
  state.bytes += bytes;
  if (state.keys >= 0 && state.bytes >= 0) return;
  state.keys = Math.max(0, state.keys);
  state.bytes = Math.max(0, state.bytes);
  doubt(state); // LN2
}

/** LN2. Refused when the range is another one than was counted. */
export function recount(state: Counted, command: Extract<Command, { readonly type: 'recount' }>): CommandResult {
  const { descriptor } = state;
  if (command.version !== descriptor.epoch.version) throw staleEpoch([descriptor]);
  if (state.doubtAt <= command.index) state.doubtAt = 0;
  count(state, command);
  return { type: 'recount' };
}
