import type { Value } from '../../checkers/index.ts';

/**
 * How a request ended, as its client may conclude:
 *  - `done`: answered; `ok` says whether a comparison held;
 *  - `unknown`: it was possibly applied, or may still be applied;
 *  - `failed`: refused, and certainly not applied.
 */
export type Outcome =
  | {
      readonly type: 'done';
      readonly ok: boolean;
      readonly out?: Value;
      /** The revision of the change, or of the state that was read. Absent if the client does not learn it. */
      readonly revision?: number;
    }
  | { readonly type: 'unknown' }
  | { readonly type: 'failed'; readonly why: string; readonly detail?: string };

/** The interface of clients for workloads. Its methods never throw. */
export interface KvClient {
  readonly name: string;
  /** `out`: the value. Null if there is none. */
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
