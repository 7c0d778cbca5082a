import type { Outcome } from './outcomes/outcome-codec.ts';

/**
 * How a command of an entry got its outcome. `remembered`: an earlier attempt was executed, and had this outcome.
 * `refused`: the command was not executed, because of its epoch, its deadline, a transaction over several ranges that
 * it has to wait for, or because no revision was left for it.
 */
export type Applying = 'executed' | 'remembered' | 'refused';

/** The result of one command. */
export interface Applied {
  readonly outcome: Outcome;
  readonly how: Applying;
}
