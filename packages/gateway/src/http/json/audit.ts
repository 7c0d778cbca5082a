/** The newest records of the audit log of one node, as they are in JSON. Types only: the console imports them. */

/** `GET /v1/audit` */
export interface AuditJson {
  /** The node whose records these are. */
  readonly node: number;
  /** False: authentication is off, and no audit log is configured, so the node keeps no new records. */
  readonly isKept: boolean;
  /** The newest first. */
  readonly records: readonly AuditRecordJson[];
  /** `before` of the next page. Absent: the node keeps no older ones in memory. */
  readonly next?: number;
}

export interface AuditRecordJson {
  /** Counts the records of the node since it started, from 1. */
  readonly number: number;
  /** Wall time of the node, in ms since 1970. */
  readonly timeMs: number;
  /** Absent: the caller has not shown who it is. */
  readonly principal?: string;
  readonly method: string;
  /** From where: the address without its port. */
  readonly address?: string;
  /** The interface: `pipe`, `grpc` or `http`. */
  readonly door?: string;
  /** What was asked for: `logIn`, `put`, `lock.forceRelease`, `addUser`. */
  readonly action: string;
  /** `failed`: the caller could not prove who it is, or was let in and got an error. */
  readonly decision: 'allowed' | 'denied' | 'failed';
  /** What the action needed, or what it changed. */
  readonly targets: readonly string[];
  /** Why it was denied, or failed. */
  readonly reason?: string;
  readonly requestId?: string;
}
