import type { Requester } from '../transport/requester.ts';
import type { ClientEvents } from './client-events.ts';
import type { LeaseJournal } from './journal.ts';
import type { LeaseEndings } from './lease-endings.ts';

/** What sessions need of their client, which owns it. */
export interface SessionDeps {
  readonly requester: Requester;
  /** Names the leases of sessions on disk; undefined for a client without a journal. */
  readonly journal: LeaseJournal | undefined;
  /** Retries to revoke the leases that could not be revoked at once. */
  readonly endings: LeaseEndings;
  /** Hears of suspensions and losses; absent: nobody does. */
  readonly events?: ClientEvents;
}
