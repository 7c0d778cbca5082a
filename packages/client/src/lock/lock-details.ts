import { ServiceError } from '@remora/base';
import type { Condition, HolderState, LockState, SessionRef } from '@remora/lock';
import type { SessionInfo } from '@remora/protocol';
import type { Requester } from '../transport/requester.ts';

/** How long a holder keeps a lock that it does not renew. */
export interface HolderTerms {
  /** How long its session outlives the last heartbeat; `TTL_NEVER_MS` and more: for ever. */
  readonly ttlMs: number;
  /** What was left of that when the cluster was asked; a leader that has just begun gives the whole again. */
  readonly remainingMs: number;
  /** What was agreed about heartbeats, if anything was. */
  readonly condition?: Condition;
}

export interface HolderDetails extends HolderState {
  /** Undefined: its session has ended since or cannot be asked about, or it is not one of the first `TERMS_MAX` holders. */
  readonly terms: HolderTerms | undefined;
}

export interface LockDetails extends LockState {
  readonly holders: readonly HolderDetails[];
}

/** Each is a question of its own: the session may be in another range than the lock. */
export const TERMS_MAX = 16;
/** What is known of the lock does not wait for long: that other range may be away. */
const TERMS_TIMEOUT_MS = 1_000;

export async function detailsOf(requester: Requester, state: LockState, timeoutMs: number): Promise<LockDetails> {
  const terms = await Promise.all(
    state.holders.slice(0, TERMS_MAX).map(({ owner }) => termsIfKnown(requester, owner.session, timeoutMs)),
  );
  return { ...state, holders: state.holders.map((holder, at) => ({ ...holder, terms: terms[at] })) };
}

async function termsIfKnown(requester: Requester, session: SessionRef, timeoutMs: number) {
  try {
    return await termsOf(requester, session, Math.min(timeoutMs, TERMS_TIMEOUT_MS));
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

async function termsOf(
  requester: Requester,
  { lease, incarnation }: SessionRef,
  timeoutMs: number,
): Promise<HolderTerms | undefined> {
  // A page of one, which begins with it: what it holds besides is not asked for.
  const query = { type: 'sessions', after: lease - 1n, limit: 1, attributes: {} } as const;
  const { result } = await requester.query(query, { timeoutMs });
  const info: SessionInfo | undefined = result.type === 'sessions' ? result.sessions[0] : undefined;
  if (info?.id !== lease || info.incarnation !== incarnation) return undefined;
  const { ttlMs, remainingMs, condition } = info;
  return { ttlMs, remainingMs, ...(condition === undefined ? {} : { condition }) };
}
