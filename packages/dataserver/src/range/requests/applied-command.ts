import { assert } from '@remora/base';
import type { Command, CommandBatch } from '@remora/protocol';
import type { Applying } from '../../state/applied.ts';
import type { OnOutcome } from '../../state/entry-run.ts';
import type { Outcome } from '../../state/outcomes/outcome-codec.ts';

/** The result of one command. */
export interface AppliedCommand {
  readonly rangeId: number;
  /** The index of the entry, and the command's place in it. */
  readonly index: number;
  readonly place: number;
  /** Empty for commands that the leader itself proposed. */
  readonly requestId: string;
  readonly command: Command;
  readonly how: Applying;
  /** The range's revision before the command and after it: they differ if it changed something. */
  readonly revisionBefore: number;
  readonly revision: number;
  readonly outcome: Outcome;
}

/** Called for every command as soon as it is applied, before anyone is answered: for checks of apply. */
export type OnApplied = (command: AppliedCommand) => void;

/** Calls `onApplied` for the commands of one entry, in their order. */
export function tellApplied(
  onApplied: OnApplied,
  entry: { readonly index: number; readonly batch: CommandBatch },
  state: { readonly rangeId: number; readonly revision: number },
): OnOutcome {
  let revisionBefore = state.revision;
  return (place, outcome, how) => {
    const { rangeId, revision } = state;
    const item = entry.batch.commands[place];
    assert(item !== undefined, 'an outcome is that of a command of the entry');
    const { requestId, command } = item;
    onApplied({ rangeId, index: entry.index, place, requestId, command, how, revisionBefore, revision, outcome });
    revisionBefore = revision;
  };
}
