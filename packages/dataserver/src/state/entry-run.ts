import type { CommandBatch } from '@remora/protocol';
import type { LogPosition } from '@remora/raft';
import type { Applied, Applying } from './applied.ts';
import type { Outcome } from './outcomes/outcome-codec.ts';
import type { RangeState } from './range-state.ts';

/** A command whose proposer waits on this node. */
interface AwaitedCommand {
  complete(error: undefined, outcome: Outcome): void;
}

/** Called for every command as soon as it is applied, before its proposer is answered. */
export type OnOutcome = (place: number, outcome: Outcome, how: Applying) => void;

interface EntryListeners {
  /** The commands of the entry, if this node proposed it. */
  readonly awaited?: readonly AwaitedCommand[] | undefined;
  readonly onOutcome?: OnOutcome | undefined;
}

/** One committed entry, while its commands are applied one after the other and their proposers are answered. */
export class EntryRun {
  readonly #state: RangeState;
  readonly #listeners: EntryListeners;

  private constructor(state: RangeState, listeners: EntryListeners) {
    this.#state = state;
    this.#listeners = listeners;
  }

  /** Commands that were applied before a crash are left out (A6 of range-state.ts). */
  static begin(state: RangeState, position: LogPosition, batch: CommandBatch, listeners: EntryListeners): EntryRun {
    state.beginEntry(position, batch);
    return new EntryRun(state, listeners);
  }

  /**
   * Returns a promise if a command needs cold data; nothing else may be applied to the range before it resolves.
   * `late`: the result of such a command.
   */
  apply(late?: Applied): void | Promise<void> {
    const state = this.#state;
    const { awaited, onOutcome } = this.#listeners;
    for (let applied = late ?? state.applyCommand(); applied !== undefined; applied = state.applyCommand()) {
      if (applied instanceof Promise) return applied.then((after) => this.apply(after));
      const place = state.appliedAhead - 1;
      onOutcome?.(place, applied.outcome, applied.how);
      awaited?.[place]?.complete(undefined, applied.outcome);
    }
    state.endEntry();
  }
}
