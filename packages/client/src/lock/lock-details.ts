import { ServiceError } from '@remora/base';
import type { Condition, HolderState, LockState, SessionRef } from '@remora/lock';
import type { SessionInfo } from '@remora/protocol';
import type { Requester } from '../transport/requester.ts';
import { printable } from '../values/printable.ts';

/** How long a holder keeps a lock without renewing it. */
export interface HolderTerms {
  /** How long its session outlives the last heartbeat, in ms; 9,000,000,000,000 and more mean forever. */
  readonly ttlMs: number;
  /** How much of that was left at the time of the request, in ms. A new leader starts again with the whole. */
  readonly remainingMs: number;
  /** The condition that the holder agreed on with the cluster, if any. */
  readonly condition?: Condition;
}

export interface HolderDetails extends HolderState {
  /** Undefined when its session has ended since or did not answer within 1 s, and for holders after the first 16. */
  readonly terms: HolderTerms | undefined;
}

export interface LockDetails extends LockState {
  readonly holders: readonly HolderDetails[];
}

/** Each costs a request: the session may be in another range than the lock. */
const TERMS_MAX = 16;
/** The state of the lock does not wait longer: the other range may be unavailable. */
const TERMS_TIMEOUT_MS = 1_000;

export async function detailsOf(requester: Requester, state: LockState, timeoutMs: number): Promise<LockDetails> {
  const terms = await Promise.all(
    state.holders.slice(0, TERMS_MAX).map(({ owner }) => termsIfKnown(requester, owner.session, timeoutMs)),
  );
  return printable({ ...state, holders: state.holders.map((holder, at) => ({ ...holder, terms: terms[at] })) });
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
  // A page of one session, which begins with this one: cheaper than `session`, which also lists its locks.
  const query = { type: 'sessions', after: lease - 1n, limit: 1, attributes: {} } as const;
  const { result } = await requester.query(query, { timeoutMs });
  const info: SessionInfo | undefined = result.type === 'sessions' ? result.sessions[0] : undefined;
  if (info?.id !== lease || info.incarnation !== incarnation) return undefined;
  const { ttlMs, remainingMs, condition } = info;
  return { ttlMs, remainingMs, ...(condition === undefined ? {} : { condition }) };
}
