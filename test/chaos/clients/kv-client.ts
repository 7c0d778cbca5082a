import type { Value } from '../../checkers/index.ts';

/**
 * How a request ended, as its client may conclude:
 *  - `done`: answered; `ok` says whether a compare held;
 *  - `unknown`: it may have been applied, or may be yet;
 *  - `failed`: refused, and certainly not applied.
 */
export type Outcome =
  | {
      readonly type: 'done';
      readonly ok: boolean;
      readonly out?: Value;
      /** Of the change, or of the state that was read; absent where the client is not told. */
      readonly revision?: number;
    }
  | { readonly type: 'unknown' }
  | { readonly type: 'failed'; readonly why: string; readonly detail?: string };

/** What the workload needs of a client. Nothing here throws. */
export interface KvClient {
  readonly name: string;
  /** `out`: the value, null when there is none. */
  get(key: string): Promise<Outcome>;
  put(key: string, value: string): Promise<Outcome>;
  delete(key: string): Promise<Outcome>;
  /** `expected` null: the key must be absent. */
  compareAndSet(key: string, expected: string | null, value: string): Promise<Outcome>;
}

export const UNKNOWN = { type: 'unknown' } as const satisfies Outcome;

export function done(revision?: number): Outcome {
  return revision === undefined ? { type: 'done', ok: true } : { type: 'done', ok: true, revision };
}
