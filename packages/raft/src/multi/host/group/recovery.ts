/**
 * Puts together what the state machine holds and what the log held, after a restart.
 *
 * A crash can leave the state machine ahead of the log, in two ways: a snapshot was installed and the log's restart
 * was not written yet, or the log lost an unsynced end that a checkpoint had covered. Both mend by restarting the log
 * at the applied position (design §6). A gap the other way, a log that begins after the applied position, cannot mend.
 */
import { InvariantError } from '@remora/base';
import { outlineOf } from '../../../core/log.ts';
import type { Entry, HardState, LogOutline, LogPosition } from '../../../core/types.ts';
import type { GroupId, RecoveredGroup } from '../../ports.ts';

export interface StartState {
  readonly hardState: HardState;
  readonly start: LogPosition;
  readonly outline: LogOutline;
  /** The last entries of it. */
  readonly entries: readonly Entry[];
  /** The log must be told to restart here before it takes another entry. */
  readonly restartAt?: LogPosition;
}

/** Throws `InvariantError` when the log does not reach back to what is applied, or contradicts it. */
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
    // The log ends before `applied`, or what it holds there is an unacknowledged branch that a snapshot replaced.
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
    throw new InvariantError(
      `group ${groupId}: the log begins after index ${start.index}, but only index ${applied.index} is applied: ` +
        'entries in between are lost. Remove this replica and let the cluster make a new one',
    );
  }
  if (start.index === applied.index && start.term !== applied.term) {
    throw new InvariantError(
      `group ${groupId}: the log begins at (${start.index}, term ${start.term}), the state machine is at ` +
        `(${applied.index}, term ${applied.term}): they belong to different histories`,
    );
  }
}

function termAt({ start, outline }: RecoveredGroup, index: number): number | undefined {
  if (index === start.index) return start.term;
  return index > outline.lastIndex ? undefined : outline.terms.findLast((run) => run.index <= index)?.term;
}

/**
 * The applied term can be above the durable one: the term came with the snapshot. No vote was given in it then, as a
 * vote needs its term on disk first.
 */
function raise(hardState: HardState, applied: LogPosition): HardState {
  return hardState.term >= applied.term
    ? { ...hardState, commit: applied.index }
    : { term: applied.term, vote: 0, commit: applied.index };
}
