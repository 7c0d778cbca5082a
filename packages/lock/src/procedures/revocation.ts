/**
 * Revocations: requests to the holders of a lock to release it.
 *
 * V1. A revocation addresses all grants that exist when it is applied, and no later one. It takes the lock from nobody
 *     and does not change who is next: a holder that agrees releases the lock.
 * V2. It is over when none of those grants is left (or only delayed ones), when its time has passed, or when another
 *     one replaces it: the latest request counts. The command that ends it removes it; after its time has passed, that
 *     is the next command on the lock, and until then it has no effect.
 * V3. A holder that upgrades or downgrades is still addressed, together with the owners that the downgrade lets in.
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
