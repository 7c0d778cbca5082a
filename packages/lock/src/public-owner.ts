/**
 * What others are shown of an owner.
 *
 * PO1. Whoever knows an owner's token may release what it holds, so no answer to anybody but its own client has the token:
 *      states, events and refusals name a `PublicOwner`, which has no field for it (docs/decisions/0077).
 * PO2. The id follows from the token alone. So every replica, and a client that looks for itself, finds the same one; and
 *      events of one owner can be told from those of another of its session.
 * PO3. The token does not follow from the id: it is 96 bits of a SHA-256, and a token is a GUID unless its client chose another
 *      text. A token that can be guessed can be tried against the id as well.
 */
import { createHash } from 'node:crypto';
import type { Hold } from './records/records.ts';
import type { Holder, HolderState, Owner, PublicOwner } from './types.ts';

const ID_LENGTH = 16;
/** Keeps the ids apart from other digests that have tokens in them. */
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
