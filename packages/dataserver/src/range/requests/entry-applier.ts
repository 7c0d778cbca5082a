import { type ClusterVersion, InvariantError, versionText } from '@remora/base';
import { type CommandBatch, decodeEntry } from '@remora/protocol';
import { type ConfState, decodeConfChange, type Entry } from '@remora/raft';
import { EntryRun } from '../../state/entry-run.ts';
import type { RangeState } from '../../state/range-state.ts';
import { type OnApplied, tellApplied } from './applied-command.ts';
import type { Proposals } from './proposals.ts';

interface EntryApplierDeps {
  readonly state: RangeState;
  readonly proposals: Pick<Proposals, 'take'>;
  readonly onApplied: OnApplied | undefined;
  /** The highest version of an entry that this build reads. */
  readonly readsUpTo: ClusterVersion;
}

/** Applies committed entries to the state of a range, together with this node's own commands in them. */
export class EntryApplier {
  readonly #deps: EntryApplierDeps;

  constructor(deps: EntryApplierDeps) {
    this.#deps = deps;
  }

  /** Applies a change of the membership that resulted in this configuration. */
  reconfigure({ index, term, data }: Entry, conf: ConfState): void {
    const position = { index, term };
    this.#deps.proposals.take(position);
    this.#deps.state.reconfigure(position, conf, decodeConfChange(data));
  }

  /** Begins to apply an entry; undefined if it carries no commands, and is therefore applied already. */
  begin({ index, term, data }: Entry): EntryRun | undefined {
    const { state, proposals, onApplied } = this.#deps;
    const position = { index, term };
    const mine = proposals.take(position);
    if (data.length === 0) {
      state.skip(position);
      return undefined;
    }
    const batch = mine?.batch ?? this.#read(data);
    const onOutcome = onApplied && tellApplied(onApplied, { index, batch }, state);
    return EntryRun.begin(state, position, batch, { awaited: mine?.pending, onOutcome });
  }

  /** An entry of a later version would be applied by rules that this build does not know: it stops instead. */
  #read(data: Entry['data']): CommandBatch {
    const batch = decodeEntry(data);
    const { readsUpTo } = this.#deps;
    if (batch.version === undefined || batch.version <= readsUpTo) return batch;
    const needed = versionText(batch.version);
    throw new InvariantError(
      `the log has an entry of version ${needed}, and this build reads versions up to ${versionText(readsUpTo)}: install Remora ${needed} or later`,
    );
  }
}
