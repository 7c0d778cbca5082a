/** The answers of the HTTP API that list locks and what sessions hold. Types only: the console imports them. */
import type { JsonBytes } from '@remora/base';
import type { LockJson, TermsJson } from '../lock-json.ts';

export type { HolderJson, LockJson, WaiterJson } from '../lock-json.ts';

/** `GET /v1/namespaces` */
export interface NamespacesAnswer {
  /** Those with locks that have, or had a moment ago, holders or waiters; in the order of the keys of their locks. */
  readonly namespaces: readonly string[];
  readonly more: boolean;
  /** The value of `after` for the next page. */
  readonly next?: string;
}

/**
 * `GET /v1/locks/{namespace}`. An election is an `exclusive` lock: its holder leads, its waiters are the candidates,
 * and `data` of the holder is what it proclaims. `kind=barrier` selects locks at which callers wait until nobody holds
 * them (`passing`). At most 10 holders and 10 waiters of each lock are listed; `GET /v1/locks/{namespace}/{name}` has
 * up to 1,000. Since when: `lockTimeMs` of a holder, `sinceMs` of a waiter; both are wall times of the server, in ms
 * since 1970.
 */
export interface LocksAnswer {
  readonly locks: readonly LockJson[];
  /** With `contains`, `kind` or `waiting`, a page may be short or empty although there is more: `next` goes on. */
  readonly more: boolean;
  readonly next?: string;
  /** The wall time of the answering node, in ms since 1970, to tell how long ago something was. */
  readonly nowMs: number;
}

/** `GET /v1/locks/{namespace}/{name}` */
export interface LockAnswer extends LockJson {
  /** As in `LocksAnswer`. */
  readonly nowMs: number;
}

/** What a session holds, or waits for. */
export interface SessionLockJson {
  readonly namespace: string;
  readonly name: JsonBytes;
  readonly ownerId: string;
  readonly mode: 'exclusive' | 'shared' | 'permits' | 'upgrade';
  /** Of a semaphore. */
  readonly permits?: number;
  /** The version of the grant. A waiter has a position in the queue instead. */
  readonly version?: number;
  /** 1 is next. */
  readonly position?: number;
  /**
   * Since when it holds the lock or waits for it: wall time of the server, in ms since 1970. Absent: it was not
   * recorded, as by a node of an earlier version.
   */
  readonly sinceMs?: number;
}

/** `GET /v1/sessions/{session}/locks` */
export interface SessionLocksAnswer {
  readonly holds: readonly SessionLockJson[];
  readonly waits: readonly SessionLockJson[];
  /** There are more: each range reports 1,000 locks of a session at most. */
  readonly more: boolean;
  readonly nowMs: number;
}

/** A session in `GET /v1/sessions`. */
export interface SessionInfoJson extends TermsJson {
  readonly session: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** The user who began it; empty: it was begun without a user. Absent: a lease of plain keys. */
  readonly owner?: string;
}

/** `GET /v1/sessions` */
export interface SessionsAnswer {
  readonly sessions: readonly SessionInfoJson[];
  readonly more: boolean;
  readonly next?: string;
}

/** `GET /v1/sessions/{session}` */
export interface SessionAnswer extends SessionInfoJson {
  readonly locks: readonly SessionLockJson[];
  readonly more: boolean;
}
