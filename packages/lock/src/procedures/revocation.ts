/**
 * Somebody asks those who hold a lock to let go.
 *
 * V1. It is asked of all grants that there are when it is asked, and of no later one. It takes the lock from nobody, and
 *     changes nothing about who is next: whoever agrees releases.
 * V2. It is over when none of those grants is left (or only such as are delayed), when its time has passed, or when
 *     somebody asks anew: the latest request counts. The command that ends it takes it away, where its time has passed the
 *     next one; until then it says nothing.
 * V3. Who holds the lock in another way from now on (upgrade, downgrade) is asked as before, together with those who are
 *     let in by that.
 */

import type { LockResult } from '../types.ts';
import { type CommandOf, notify, type Procedure, refused } from './procedure.ts';

export function revoke(procedure: Procedure, { by, reason, forMs }: CommandOf<'revoke'>): LockResult {
  const { view, rows } = procedure;
  const hold = rows.anyHold();
  if (hold === undefined || !rows.isAsked(view.revision)) return refused('LOCK_NOT_HELD', 'nobody holds the lock');
  const { revision } = view;
  rows.setRevocation({ revision, version: revision, by, reason, untilMs: view.timeMs + forMs, sinceMs: view.wallMs });
  const result: LockResult = { type: 'revoking', version: revision };
  notify(procedure, hold.holder.owner, result);
  return result;
}
