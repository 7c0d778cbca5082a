/** How a client gets a session: it requests a new one, or takes up the session of an earlier process. */
import { type Clock, ServiceError } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { NO_OWNER } from '@remora/protocol';
import { inTime } from '../transport/in-time.ts';
import type { LeaseJournal } from './journal.ts';
import type { SessionDeps } from './session-deps.ts';
import type { SessionTerms } from './session-pace.ts';
import type { SentAt } from './session-validity.ts';

export interface NewSession extends SessionTerms {
  readonly timeoutMs: number;
  readonly attributes: Readonly<Record<string, string>>;
}

/** A session that exists, and when the request was sent from which it counts (session.ts S1). */
export interface BegunSession extends SessionTerms, SentAt {
  readonly ref: SessionRef;
}

export async function grantSession({ requester, journal }: SessionDeps, options: NewSession): Promise<BegunSession> {
  const { clock, random } = requester.ports;
  const id = BigInt.asUintN(63, random.bytes(8).readBigUInt64BE()) | 1n;
  const { timeoutMs, ttlMs, attributes } = options;
  const condition = options.condition === undefined ? {} : { condition: options.condition };
  if (journal !== undefined) await named(journal, id, { clock, ms: timeoutMs });
  // The lease cannot begin before the first attempt is sent.
  const sent = { sentMs: clock.monotonicMs(), sentWallMs: clock.wallMs() };
  // The gateway fills in whose it is.
  const command = { type: 'leaseGrant', id, ttlMs, attributes, ...condition, owner: NO_OWNER } as const;
  const { result } = await requester.command(command, { timeoutMs }).catch(async (error) => {
    // If it was granted after all, it ends by its TTL, and holds nothing.
    await journal?.remove(id);
    throw error;
  });
  if (result.type !== 'leaseGrant') throw new ServiceError('INTERNAL', `a lease grant was answered by ${result.type}`);
  const ref = { lease: result.id, incarnation: result.incarnation };
  return { ref, ttlMs: result.ttlMs, ...condition, ...sent };
}

/** The journal names the cluster: a lazy client may not have found it yet. */
async function named(journal: LeaseJournal, id: bigint, limit: { readonly clock: Clock; readonly ms: number }) {
  const reason = (): ServiceError => new ServiceError('UNAVAILABLE', 'no gateway has answered since the client began');
  await inTime(journal.found, { ...limit, reason });
  await journal.add(id);
}

/**
 * @throws ServiceError SESSION_EXPIRED when it has ended. Without an answer it stays in the journal, as it may still
 *   exist.
 */
export async function takeUpSession(
  { requester, journal }: SessionDeps,
  ref: SessionRef,
  timeoutMs: number,
): Promise<BegunSession> {
  const { clock } = requester.ports;
  const sent = { sentMs: clock.monotonicMs(), sentWallMs: clock.wallMs() };
  const { lease: id, incarnation } = ref;
  if (journal !== undefined) await named(journal, id, { clock, ms: timeoutMs });
  try {
    const { result } = await requester.query({ type: 'leaseKeepAlive', id, incarnation }, { timeoutMs });
    if (result.type === 'leaseKeepAlive' && result.ttlMs > 0) return { ref, ttlMs: result.ttlMs, ...sent };
    throw new ServiceError('LEASE_NOT_FOUND', 'the session has ended');
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'LEASE_NOT_FOUND') throw error;
    await journal?.remove(id);
    throw new ServiceError('SESSION_EXPIRED', 'the session to resume has ended', { cause: error });
  }
}
