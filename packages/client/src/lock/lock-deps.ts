import type { LockId, SessionRef } from '@remora/lock';
import type { Session } from '../session/session.ts';
import type { SessionTerms } from '../session/session-pace.ts';
import type { Requester } from '../transport/requester.ts';
import type { GrantWatches } from './grant-watch.ts';
import type { Tracing } from './tracing.ts';

/** What locks need of their client. */
export interface LockDeps {
  readonly requester: Requester;
  /** The session that locks belong to; opened when first asked for, and anew after a loss. */
  readonly session: () => Session | Promise<Session>;
  /** Opens a session for one lock alone; without terms, with the TTL of the client's sessions. */
  readonly openLease: (terms: SessionTerms | undefined, lock: LockId) => Promise<Session>;
  /** Goes on with a session of an earlier process. */
  readonly resumeSession: (ref: SessionRef) => Promise<Session>;
  /** Numbers the acquires of this client. */
  readonly nextAttempt: () => number;
  /** Of an owner that no other acquire shares unless its caller says so. */
  readonly newToken: () => string;
  readonly requestTimeoutMs: number;
  readonly grants: GrantWatches;
  readonly tracing: Tracing;
}
