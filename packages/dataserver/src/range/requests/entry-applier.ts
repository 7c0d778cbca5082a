import { decodeEntry } from '@remora/protocol';
import { type ConfState, decodeConfChange, type Entry } from '@remora/raft';
import type { RangeState } from '../../state/range-state.ts';
import { type OnApplied, tellApplied } from './applied-command.ts';
import type { Proposals } from './proposals.ts';

export interface EntryApplierDeps {
  readonly proposals: Pick<Proposals, 'take'>;
  /** An entry is applied whole. */
  readonly applied: (entry: Entry) => void;
  /** A change of the membership is applied, after `applied` was told. */
  readonly reconfigured: () => void;
  readonly onApplied: OnApplied | undefined;
}

/** Takes committed entries to the state of a range, one after the other, and outcomes to those who proposed them. */
export class EntryApplier {
  readonly #state: RangeState;
  readonly #deps: EntryApplierDeps;

  constructor(state: RangeState, deps: EntryApplierDeps) {
    this.#state = state;
    this.#deps = deps;
  }

  /** Returns a promise when an entry needs cold data; no other call may come before it resolves. */
  apply(entries: readonly Entry[], conf: ConfState): void | Promise<void> {
    const [first] = entries;
    if (first?.type !== 'conf') return this.#applyFrom(entries, 0);
    const position = { index: first.index, term: first.term };
    this.#deps.proposals.take(position);
    this.#state.reconfigure(position, conf, decodeConfChange(first.data)); // it comes alone
    this.#deps.applied(first);
    this.#deps.reconfigured();
  }

  #applyFrom(entries: readonly Entry[], first: number): void | Promise<void> {
    const { applied } = this.#deps;
    for (let i = first; i < entries.length; i++) {
      const entry = entries[i];
      if (entry === undefined) break;
      const waiting = this.#applyEntry(entry);
      if (waiting !== undefined) return waiting.then(() => applied(entry)).then(() => this.#applyFrom(entries, i + 1));
      applied(entry);
    }
  }

  #applyEntry(entry: Entry): void | Promise<void> {
    const position = { index: entry.index, term: entry.term };
    const mine = this.#deps.proposals.take(position);
    if (entry.data.length === 0) return this.#state.skip(position);
    const batch = mine?.batch ?? decodeEntry(entry.data);
    const { onApplied } = this.#deps;
    const tell = onApplied && tellApplied(onApplied, { index: entry.index, batch }, this.#state);
    return this.#state.applyBatch(position, batch, (i, outcome, how) => {
      tell?.(i, outcome, how);
      mine?.done[i]?.(undefined, outcome);
    });
  }
}
