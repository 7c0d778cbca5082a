import type { Condition, SessionLock } from '@remora/lock';

/** A session, as those are told of it who are not its client. Every lease is one. */
export interface SessionInfo {
  readonly id: bigint;
  readonly incarnation: number;
  readonly ttlMs: number;
  /** Left before it ends unless it is renewed. */
  readonly remainingMs: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly condition?: Condition;
}

/** Sessions that one answer lists, at most. */
export const SESSIONS_LIMIT_MAX = 1_000;
/** Holds and places in queues that one range tells of a session. */
export const SESSION_LOCKS_MAX = 1_000;

export type SessionQuery =
  /**
   * Those that have each of the attributes, beginning as is said, in the order of their ids as they are stored, behind
   * `after` (0: from the first). A range looks at so many at a time, so it may give few, or none, and there are more.
   */
  | {
      readonly type: 'sessions';
      readonly after: bigint;
      readonly limit: number;
      readonly attributes: Readonly<Record<string, string>>;
    }
  /**
   * One session, and what it holds and waits for. `incarnation` 0 asks its home, which tells of itself and of the locks that
   * are in the same range; any other asks a range for the locks that it has of this very session.
   */
  | { readonly type: 'session'; readonly id: bigint; readonly incarnation: number };

export type SessionQueryResult =
  /** `next`: where to go on, behind this id; 0: there are no more. */
  | { readonly type: 'sessions'; readonly sessions: readonly SessionInfo[]; readonly next: bigint }
  | {
      readonly type: 'session';
      /** Undefined where it is not known, or not alive. */
      readonly session: SessionInfo | undefined;
      readonly locks: readonly SessionLock[];
      /** There are more locks than are told of. */
      readonly more: boolean;
    };
