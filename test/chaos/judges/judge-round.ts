import type { Finding } from '../../checkers/index.ts';
import { judgeBarriers } from './barriers.ts';
import { judgeCounters } from './counters.ts';
import { judgeElections } from './elections.ts';
import type { Round } from './evidence.ts';
import { judgeFences } from './fences.ts';
import { judgeKinds } from './kinds.ts';
import { judgeLeases } from './leases.ts';
import { judgeListeners } from './listeners.ts';
import { judgeLists } from './lists.ts';
import { judgeLocks } from './locks.ts';
import { judgeMirrors } from './mirrors.ts';
import { judgeRegisters } from './registers.ts';
import { judgeTerms } from './terms.ts';
import { judgeBank, judgeTxns } from './txns.ts';
import { judgeWatches } from './watches.ts';
import { judgeWrites } from './writes.ts';

/** Returns every promise that a round contradicts, or that could not be decided. Empty if all is well. */
export function judgeRound(round: Round, context: { readonly compacted: number }): readonly Finding[] {
  return [
    ...judgeWrites(round),
    ...judgeRegisters(round),
    ...judgeLists(round),
    ...judgeTxns(round),
    ...judgeCounters(round),
    ...judgeBank(round),
    ...judgeMirrors(round),
    ...judgeLocks(round),
    ...judgeFences(round),
    ...judgeKinds(round),
    ...judgeTerms(round),
    ...judgeElections(round),
    ...judgeBarriers(round),
    ...judgeListeners(round),
    ...judgeLeases(round),
    ...judgeWatches(round, context.compacted),
  ];
}
