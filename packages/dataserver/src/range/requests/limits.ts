import type { Limit } from '../../state/effects.ts';

/** A limit that was reached, and what whoever is refused is told. */
export interface OverLimit {
  readonly limit: Limit;
  /** The latter when waiting does not help. */
  readonly code: 'RESOURCE_EXHAUSTED' | 'INVALID_ARGUMENT';
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}
