import { ServiceError } from '@remora/base';
import type { RangeReply } from '@remora/protocol';
import type { RevisionSource } from '../../revisions/revision-drawer.ts';
import type { AppliedEnd } from '../../state/effects.ts';
import type { RangeFields } from '../../state/range-fields.ts';

type Done = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

export interface LeaseEndRevisionDeps {
  readonly state: Pick<RangeFields, 'revision' | 'descriptor'>;
  readonly source: Pick<RevisionSource, 'newest'>;
}

/**
 * Chooses the revision of the answer to a caller that ended a lease. Part of the leader of the lease's home.
 *
 * ER1. The answer's revision is at or above that of every change that ended the lease, in any range: a read at that
 *      revision finds none of the lease's keys. etcd answers with its current revision, which has the same property.
 * ER2. If one entry took everything, the answer has the revision of that entry. This is decided while the entry is
 *      applied: afterwards either the end is over, or the lease stays in the state *ending* (LC1 of lease-commands.ts).
 *      Only the last end is remembered; a repeated answer for an earlier one uses ER3.
 * ER3. Otherwise the revision is taken after the last change was applied. A range that counts by itself has all keys,
 *      so its own revision is enough. If the master numbers the range, other ranges may have written the last change,
 *      and the master reports the newest revision that it has allocated: every change of this end got its revision
 *      before that question.
 */
export class LeaseEndRevision {
  readonly #deps: LeaseEndRevisionDeps;
  /** ER2. The last lease that ended in the entry of this revision. */
  #last: AppliedEnd & { readonly id: bigint } = { id: 0n, revision: 0, isWhole: false };

  constructor(deps: LeaseEndRevisionDeps) {
    this.#deps = deps;
  }

  /** Called while the end of a lease is applied. */
  ended(id: bigint, end: AppliedEnd): void {
    this.#last = { id, ...end };
  }

  /** ER2. Whether one entry took everything, at or below this revision, as far as is known. */
  isWhole(id: bigint, revision: number): boolean {
    return this.#last.id === id && revision >= this.#last.revision && this.#last.isWhole;
  }

  /** ER3. Called once nothing is left of the lease. */
  answer(reply: RangeReply, done: Done): void {
    const { state, source } = this.#deps;
    const { revision } = state;
    if (state.descriptor.revisionSource === 'range') return done(undefined, { ...reply, revision });
    source.newest(revision, (error, newest) => {
      if (newest === undefined) done(notKnown(error), undefined);
      else done(undefined, { ...reply, revision: newest });
    });
  }
}

/** The caller repeats the request, which is remembered. It is answered once the masters answer. */
function notKnown(cause: ServiceError | undefined): ServiceError {
  const message = 'the lease has ended, but the masters did not say at which revision; retry under the same request id';
  return new ServiceError('UNKNOWN_OUTCOME', message, { cause });
}
