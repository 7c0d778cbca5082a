/**
 * Combines the state of the state machine with that of the log after a restart.
 *
 * A crash can leave the state machine ahead of the log, in two ways: a snapshot was installed but the restart of the
 * log was not yet written, or the log lost an unsynced end that a checkpoint had covered. Restarting the log at the
 * applied position repairs both (design §6).
 *
 * A log that starts after the applied position cannot be repaired: entries were dropped because the state machine held
 * them durably, but it no longer does. Every record of the start of a log is durable before entries are dropped. So
 * this check detects any loss at the end of a state machine's storage, unless the log still has those entries and
 * applies them again.
 */
import { outlineOf } from '../../../core/log.ts';
import type { Entry, HardState, LogOutline, LogPosition } from '../../../core/types.ts';
import type { GroupId, RecoveredGroup } from '../../ports.ts';

export interface StartState {
  readonly hardState: HardState;
  readonly start: LogPosition;
  readonly outline: LogOutline;
  /** The last entries of the log. */
  readonly entries: readonly Entry[];
  /** The log must restart here before it accepts another entry. */
  readonly restartAt?: LogPosition;
}

/** The state machine lacks data that the log dropped because the state machine had it. The node must stop. */
export class StateLostError extends Error {
  override readonly name = 'StateLostError';

  constructor(groupId: GroupId, what: string) {
    super(
      `the state of group ${groupId} is damaged: ${what}. ` +
        'Keep the data, and check the disk. Without the missing data this node must not serve under its old name: ' +
        'replace it by a new node with another name and an empty directory.',
    );
  }
}

/** Throws a `StateLostError` if the log does not reach back to the applied position, or contradicts it. */
export function startState(given: {
  readonly groupId: GroupId;
  readonly applied: LogPosition;
  readonly recovered: RecoveredGroup | undefined;
}): StartState {
  const { groupId, applied, recovered } = given;
  if (recovered === undefined) {
    const hardState = { term: applied.term, vote: 0, commit: applied.index };
    return applied.index === 0
      ? { hardState, ...emptyAfter(applied) }
      : { hardState, ...emptyAfter(applied), restartAt: applied };
  }
  const { start, outline, entries } = recovered;
  checkReach(groupId, applied, start);
  if (termAt(recovered, applied.index) !== applied.term) {
    // The log ends before `applied`, or has an unacknowledged branch there that a snapshot replaced.
    return { hardState: raise(recovered.hardState, applied), ...emptyAfter(applied), restartAt: applied };
  }
  const commit = Math.min(Math.max(recovered.hardState.commit, applied.index), outline.lastIndex);
  return { hardState: { ...recovered.hardState, commit }, start, outline, entries };
}

function emptyAfter(start: LogPosition): { start: LogPosition; outline: LogOutline; entries: readonly Entry[] } {
  return { start, outline: outlineOf(start, []), entries: [] };
}

function checkReach(groupId: GroupId, applied: LogPosition, start: LogPosition): void {
  if (start.index > applied.index) {
    throw new StateLostError(
      groupId,
      `its log starts after index ${start.index}, up to which the state was durable, but the state is back at index ${applied.index}`,
    );
  }
  if (start.index === applied.index && start.term !== applied.term) {
    throw new StateLostError(
      groupId,
      `its log starts after (${start.index}, term ${start.term}), but the state is at (${applied.index}, term ${applied.term})`,
    );
  }
}

function termAt({ start, outline }: RecoveredGroup, index: number): number | undefined {
  if (index === start.index) return start.term;
  return index > outline.lastIndex ? undefined : outline.terms.findLast((run) => run.index <= index)?.term;
}

/**
 * The applied term can be above the durable one: the term came with the snapshot. The replica did not vote in it,
 * because a vote requires its term on disk first.
 */
function raise(hardState: HardState, applied: LogPosition): HardState {
  return hardState.term >= applied.term
    ? { ...hardState, commit: applied.index }
    : { term: applied.term, vote: 0, commit: applied.index };
}
