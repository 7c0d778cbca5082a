/** The messages between a run and its client processes. */
import type { ClientAccess } from '../users/access.ts';
import type { Passwords } from '../users/rights.ts';
import type { LoadName } from '../workloads/index.ts';

export interface ClientArguments {
  readonly role: 'load' | 'auditor';
  readonly load: LoadName;
  readonly name: string;
  readonly journal: string;
  /** The start of the run, by `process.hrtime.bigint()`. */
  readonly beganNs: string;
  readonly roundMs: number;
  readonly endpoints: readonly string[];
  /** The node that is used directly. */
  readonly home: number;
  readonly seed: number;
  /** A worker's mean pause between two operations. */
  readonly thinkMs: number;
  /** Absent: plain text, and no users. */
  readonly access?: ClientAccess;
  readonly passwords: Passwords;
}

export type ToClient =
  /** End the load. `stopped` is the answer. The auditor first reads everything. */
  | { readonly type: 'stop' }
  | { readonly type: 'compact'; readonly back: number }
  | { readonly type: 'passwords'; readonly passwords: Passwords }
  | { readonly type: 'answer'; readonly id: number; readonly value: number | null };

export type FromClient =
  | { readonly type: 'ready' | 'stopped' }
  | { readonly type: 'read'; readonly id: number; readonly lock: string; readonly version: number }
  | {
      readonly type: 'write';
      readonly id: number;
      readonly lock: string;
      readonly version: number;
      readonly value: number;
    };

/** The time limit of an operation for most clients. Hasty ones give up after a moment. */
export const PATIENT_MS = 10_000;
export const HASTY_MS = 400;
