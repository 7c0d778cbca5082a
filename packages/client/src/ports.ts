import type { Clock, CommandIdentity, Disk, Logger, ProcessIdentity, Random } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import type { LinkConnector, PipeGateways } from '@remora/protocol';
import type { KnownToken } from './transport/log-ins.ts';

/** What the SDK needs of its environment. `connect` provides Node's, a simulation provides virtual ones. */
export interface ClientPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Opens a connection (a Pipe) to the address of a gateway. */
  readonly connectLink: LinkConnector;
  readonly liveness: Liveness;
  /**
   * Whether credentials may be sent to a discovered address, which plain text would show to everybody on the way.
   * Absent: to any.
   */
  readonly mayLogInAt?: ((address: string) => boolean) | undefined;
  /** Absent: when the process exits, what the client holds is left to the TTL of its sessions. */
  readonly exit?: ExitHooks;
  /** Absent: when the process dies of an exception, what the client holds is left to the TTL of its sessions. */
  readonly crash?: CrashHooks;
  /** Absent: when the process dies, what the client holds is left to the TTL of its sessions. */
  readonly journal?: JournalPorts;
  /** Absent: what a task holds is not known, so waiting for itself is not detected. */
  readonly task?: TaskContext;
  /** Absent: nothing renews sessions while the client's thread is blocked. */
  readonly backgroundRenewer?: RenewsInBackground;
}

/** Keeps the process alive while a call is pending or a session is open; the client's timers do not. */
export interface Liveness {
  hold(): void;
  release(): void;
}

/** What a task holds, wherever it goes on (`AsyncLocalStorage`). */
export interface TaskContext {
  /** What was passed to the innermost `run` around the caller. */
  holds(): unknown;
  run<Result>(holds: unknown, work: () => Result): Result;
}

/** Notifies before the process exits. */
export interface ExitHooks {
  /** Runs `fn` before the process exits or is ended by a signal. Returns a function that removes it. */
  beforeExit(fn: () => Promise<void>): () => void;
}

/** Notifies when the process is about to die of an uncaught exception. */
export interface CrashHooks {
  /** The sessions that are to be revoked then. Returns a function that takes this back. */
  beforeCrash(sessions: () => readonly SessionRef[]): () => void;
}

/** A directory in which clients record what they hold, for the clients that come after them. */
export interface JournalPorts {
  /** A disk whose root is the directory. */
  readonly disk: Disk;
  readonly self: ProcessIdentity;
  /** Whether that process, or every process of that command, has certainly ended; false when that is unknown. */
  isGone(process: ProcessIdentity | CommandIdentity): boolean;
}

/** Renews sessions while the client's thread is blocked. */
export interface RenewsInBackground {
  /** Further gateways that the cluster has named. */
  learn(gateways: PipeGateways): void;
  /** A token that the client has obtained: it saves the renewer a log-in of its own. */
  useToken(token: KnownToken): void;
  /** Takes on a session whose last acknowledged heartbeat was sent at `sentMs`, to be renewed at that interval. */
  renew(session: SessionRef, start: { readonly intervalMs: number; readonly sentMs: number }): RenewedInBackground;
  close(): void;
}

/** A session that the background renewer looks after. */
export interface RenewedInBackground {
  /** Renew it at this interval from now on. */
  pace(intervalMs: number): void;
  /** Stop renewing it at this moment of the monotonic clock. */
  until(atMs: number): void;
  /** A heartbeat that the client sent at that moment was acknowledged. */
  acknowledged(sentMs: number): void;
  /** Returns the renewer's latest acknowledged heartbeat, unless it was returned before. */
  take(): AcknowledgedBeat | undefined;
  /** Stop renewing it. */
  end(): void;
}

/** An acknowledged heartbeat: when it was sent, by the client's two clocks, and the TTL in its acknowledgement. */
export interface AcknowledgedBeat {
  readonly sentMs: number;
  readonly sentWallMs: number;
  readonly ttlMs: number;
}
