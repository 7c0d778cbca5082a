import type { Clock, CommandIdentity, Disk, Logger, ProcessIdentity, Random } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import type { LinkConnector, PipeGateways } from '@remora/protocol';

/** What the SDK needs of its surroundings; `connect` wires it to Node, the simulator to its virtual world. */
export interface ClientPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Begins a Pipe to a gateway's address. */
  readonly connectLink: LinkConnector;
  readonly liveness: Liveness;
  /** Absent: what a client holds when its process ends is left to its sessions' TTL. */
  readonly exit?: ExitHooks;
  /** Absent: what is left by a process that dies is left to its sessions' TTL. */
  readonly journal?: JournalPorts;
  /** Absent: nobody renews sessions while the client's thread is busy. */
  readonly backgroundRenewer?: RenewsInBackground;
}

/** Keeps the process alive while the caller awaits something, or has a session; timers do not. */
export interface Liveness {
  hold(): void;
  release(): void;
}

/** Tells when the process is about to end. */
export interface ExitHooks {
  /** Runs `fn` before the process ends by itself or by a signal; returns a function that forgets it. */
  beforeExit(fn: () => Promise<void>): () => void;
}

/** A directory in which clients name what they hold, for those who come after them. */
export interface JournalPorts {
  /** Its root is the directory. */
  readonly disk: Disk;
  readonly self: ProcessIdentity;
  /** Whether that process, or every process of that command, has certainly ended; false whenever it cannot be told. */
  isGone(process: ProcessIdentity | CommandIdentity): boolean;
}

/** Renews sessions while the client cannot. */
export interface RenewsInBackground {
  /** Where else gateways may be found, as the client was told. */
  learn(gateways: PipeGateways): void;
  /** Begins with a session whose last acknowledged heartbeat was sent at `sentMs`, and is to be renewed at that pace. */
  renew(session: SessionRef, start: { readonly intervalMs: number; readonly sentMs: number }): RenewedInBackground;
  close(): void;
}

/** A session that has a stand-in. */
export interface RenewedInBackground {
  /** It is to be renewed at this pace from now on. */
  pace(intervalMs: number): void;
  /** From then on, on the monotonic clock, it is not to be renewed any more. */
  until(atMs: number): void;
  /** A heartbeat that the client sent then was acknowledged. */
  acknowledged(sentMs: number): void;
  /** The latest heartbeat of the stand-in that was acknowledged, unless it was taken before. */
  take(): AcknowledgedBeat | undefined;
  end(): void;
}

/** An acknowledged heartbeat: when it was sent, on the client's clocks, and the TTL that its acknowledgement named. */
export interface AcknowledgedBeat {
  readonly sentMs: number;
  readonly sentWallMs: number;
  readonly ttlMs: number;
}
