/** The two libraries as the rows of the table see them: the same calls, and what is around them. */
import type { EventEmitter } from 'node:events';

export interface StatsLike {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: ReadonlySet<unknown>;
  readonly votesAgainst: ReadonlyMap<unknown, Error>;
}

export interface ResultLike {
  readonly attempts: readonly Promise<StatsLike>[];
}

export interface LockLike extends ResultLike {
  readonly redlock: RedlockLike;
  readonly resources: string[];
  readonly value: string;
  expiration: number;
  release(): Promise<ResultLike>;
  extend(duration: number): Promise<LockLike>;
}

export type SignalLike = AbortSignal & { error?: Error };

export interface RedlockLike extends EventEmitter {
  readonly clients: Set<unknown>;
  readonly settings: Readonly<Record<string, number>>;
  acquire(resources: readonly string[], duration: number, settings?: object): Promise<LockLike>;
  extend(lock: LockLike, duration: number, settings?: object): Promise<LockLike>;
  release(lock: LockLike, settings?: object): Promise<ResultLike>;
  using<T>(
    resources: readonly string[],
    duration: number,
    settingsOrRoutine: object | ((signal: SignalLike) => Promise<T>),
    routine?: (signal: SignalLike) => Promise<T>,
  ): Promise<T>;
  quit(): Promise<void>;
}

/** What the module exports. */
export interface Library {
  readonly default: new (clients: Iterable<unknown>, settings?: object) => RedlockLike;
  readonly Lock: new (
    redlock: RedlockLike,
    resources: readonly string[],
    value: string,
    attempts: readonly Promise<StatsLike>[],
    expiration: number,
  ) => LockLike;
  readonly ExecutionError: new (message: string, attempts: readonly Promise<StatsLike>[]) => Error & ResultLike;
  readonly ResourceLockedError: new (message: string) => Error;
}

export interface Side {
  readonly library: Library;
  /** Clients that all rows share. */
  readonly clients: readonly unknown[];
  /** Clients of one's own, which end with the test. */
  ownClients(): Promise<readonly unknown[]>;
  /** Takes the resource away from its holder. */
  takeAway(resource: string): Promise<void>;
  isLocked(resource: string): Promise<boolean>;
  /** Ends fewer servers than a quorum. */
  endMinority(): Promise<void>;
  /** Ends all servers but one. */
  endMajority(): Promise<void>;
  stop(): Promise<void>;
}
