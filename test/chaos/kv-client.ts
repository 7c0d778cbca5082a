import type { Value } from '../checkers/index.ts';

/**
 * How a request ended, as its client may conclude:
 *  - `done`: answered; `ok` says whether a compare held;
 *  - `unknown`: it may have been applied, or may be yet;
 *  - `failed`: refused, and certainly not applied.
 */
export type Outcome =
  | { readonly type: 'done'; readonly ok: boolean; readonly out?: Value }
  | { readonly type: 'unknown' }
  | { readonly type: 'failed'; readonly why: string };

/** What the workload needs of a client. Nothing here throws. */
export interface KvClient {
  readonly name: string;
  get(key: string): Promise<Outcome>;
  put(key: string, value: string): Promise<Outcome>;
  delete(key: string): Promise<Outcome>;
  /** `expected` null: the key must be absent. */
  compareAndSet(key: string, expected: string | null, value: string): Promise<Outcome>;
  close(): void | Promise<void>;
}

export const UNKNOWN = { type: 'unknown' } as const satisfies Outcome;

export function done(out?: Value): Outcome {
  return out === undefined ? { type: 'done', ok: true } : { type: 'done', ok: true, out };
}
