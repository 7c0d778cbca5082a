/**
 * How an owner is shown to other callers.
 *
 * PO1. A caller that knows the token of an owner may release what it holds. So only the owner's own client gets the
 *      token: states, events and refusals contain a `PublicOwner`, which has no field for it (docs/decisions/0077).
 * PO2. The id depends only on the token. So every replica, and the owner's client, computes the same id, and the events
 *      of two owners of one session can be told apart.
 * PO3. The token cannot be computed from the id, which is 96 bits of a SHA-256, as long as the token cannot be guessed:
 *      it is a GUID unless the client chose another text. A token that can be guessed can be checked against the id.
 */
import { createHash } from 'node:crypto';
import type { Hold } from './records/records.ts';
import type { Holder, HolderState, Owner, PublicOwner } from './types.ts';

const ID_LENGTH = 16;
/** Separates the ids from other digests of tokens. */
const DOMAIN = 'remora owner\0';

export function publicOwner({ session, token }: Owner): PublicOwner {
  return { session, id: ownerId(token) };
}

/** PO2, PO3. */
export function ownerId(token: string): string {
  return createHash('sha256').update(DOMAIN).update(token).digest('base64url').slice(0, ID_LENGTH);
}

export function publicHolder({ owner, version, depth, lockTimeMs, data }: Hold['holder']): Holder {
  return { owner: publicOwner(owner), version, depth, lockTimeMs, data };
}

export function stateOfHolder({ holder, mode, permits, keepData: keepsData, delayMs, delayed }: Hold): HolderState {
  return { ...publicHolder(holder), mode, permits, keepsData, delayMs, delayed };
}
