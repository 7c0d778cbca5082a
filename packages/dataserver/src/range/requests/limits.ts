import type { Limit } from '../../state/effects.ts';

/** A limit that was reached, and the error for the refused caller. */
export interface OverLimit {
  readonly limit: Limit;
  /** INVALID_ARGUMENT if waiting does not help. */
  readonly code: 'RESOURCE_EXHAUSTED' | 'INVALID_ARGUMENT';
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}
