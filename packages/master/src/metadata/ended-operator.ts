/** An operator that has ended, as the masters remember it beyond the term of the leader that ran it. */
export interface EndedOperator {
  readonly operatorId: number;
  readonly rangeId: number;
  /** The other range of a merge; 0: there is none. */
  readonly partner: number;
  readonly kind: string;
  readonly status: string;
  readonly reason: string;
  /** Its steps in words. */
  readonly steps: readonly string[];
  /** How many steps were done. */
  readonly step: number;
  /** Why it ended with this status. */
  readonly outcome: string;
  /** Wall times of the leader, in ms since 1970; for display only. */
  readonly createdMs: number;
  readonly endedMs: number;
}

/** The masters remember so many. */
export const ENDED_OPERATORS_MAX = 200;
/** Longer texts, as those that contain keys, are cut. */
export const OPERATOR_TEXT_MAX = 300;
