import type { LockId, SessionRef } from '@remora/lock';
import type { Tracing } from '../observe/tracing.ts';
import type { Session } from '../session/session.ts';
import type { SessionTerms } from '../session/session-pace.ts';
import type { Requester } from '../transport/requester.ts';
import type { GrantWatches } from './grant-watch.ts';

/** What locks need of their client. */
export interface LockDeps {
  readonly requester: Requester;
  /** The session that locks belong to: opened by the first call, and again after a loss. */
  readonly session: () => Session | Promise<Session>;
  /** Opens a session for one lock. Without terms it has the TTL of the client's sessions. */
  readonly openLease: (terms: SessionTerms | undefined, lock: LockId) => Promise<Session>;
  /** Takes up the session of an earlier process. */
  readonly resumeSession: (ref: SessionRef) => Promise<Session>;
  /** Numbers the acquires of this client. */
  readonly nextAttempt: () => number;
  /** A token for an owner that only one acquire has. */
  readonly newToken: () => string;
  readonly requestTimeoutMs: number;
  /** Whether a task that holds a lock enters it again (TL2). */
  readonly reentrant: boolean;
  readonly grants: GrantWatches;
  readonly tracing: Tracing;
}
