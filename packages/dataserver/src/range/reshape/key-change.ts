import type { SplitReasons } from '../../splitting/split-reasons.ts';
import type { LeaseManager } from '../leases/lease-manager.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { ReplicaRows } from '../replica-rows.ts';
import type { ClosedRevisions } from '../requests/closed-revisions.ts';

interface KeyChangeParts {
  readonly rows: ReplicaRows;
  readonly splitReasons: SplitReasons;
  readonly closing: ClosedRevisions;
  readonly leases: LeaseManager;
}

/** Updates the parts of a replica that depend on the keys of the range, after a split or a merge. */
export class KeyChange {
  readonly #context: ReplicaContext;
  readonly #parts: KeyChangeParts;

  constructor(context: ReplicaContext, parts: KeyChangeParts) {
    this.#context = context;
    this.#parts = parts;
  }

  /** Called in the step that changes the keys of the range. */
  applied(): void {
    const { rows, splitReasons, closing, leases } = this.#parts;
    const { group, serving, time, state } = this.#context;
    rows.collectAnew();
    splitReasons.reset();
    closing.keysChanged();
    leases.keysChanged();
    group.tellCommits(); // clients wait for the ranges that have the keys now, whichever node leads them
    if (serving) time.rebase(state.rangeTimeMs);
  }
}
