/** What a run says to its client processes, and they to it. */
import type { LoadName } from '../workloads/index.ts';

export interface ClientArguments {
  readonly role: 'load' | 'auditor';
  readonly load: LoadName;
  readonly name: string;
  readonly journal: string;
  /** When the run began, by `process.hrtime.bigint()`. */
  readonly beganNs: string;
  readonly roundMs: number;
  readonly endpoints: readonly string[];
  /** Which of them is used directly. */
  readonly home: number;
  readonly seed: number;
  /** Mean pause of a worker between two operations. */
  readonly thinkMs: number;
}

export type ToClient =
  /** End the load; answered by `stopped`. The auditor reads everything before. */
  | { readonly type: 'stop' }
  | { readonly type: 'compact'; readonly back: number }
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

/** How long an operation may take for most clients; hasty ones give up after a moment. */
export const PATIENT_MS = 10_000;
export const HASTY_MS = 400;
