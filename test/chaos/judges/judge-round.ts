import type { Finding } from '../../checkers/index.ts';
import type { Round } from './evidence.ts';
import { judgeFences } from './fences.ts';
import { judgeKinds } from './kinds.ts';
import { judgeLeases } from './leases.ts';
import { judgeLists } from './lists.ts';
import { judgeLocks } from './locks.ts';
import { judgeRegisters } from './registers.ts';
import { judgeTxns } from './txns.ts';
import { judgeWatches } from './watches.ts';
import { judgeWrites } from './writes.ts';

/** Every promise that a round contradicts, or that could not be decided; empty when all is well. */
export function judgeRound(round: Round, context: { readonly compacted: number }): readonly Finding[] {
  return [
    ...judgeWrites(round),
    ...judgeRegisters(round),
    ...judgeLists(round),
    ...judgeTxns(round),
    ...judgeLocks(round),
    ...judgeFences(round),
    ...judgeKinds(round),
    ...judgeLeases(round),
    ...judgeWatches(round, context.compacted),
  ];
}
