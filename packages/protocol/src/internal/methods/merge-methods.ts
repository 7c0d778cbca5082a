import { nothing } from '../../schema/kinds.ts';
import {
  DecideMergeRequest,
  MergeRound,
  MergeVerdict,
  SealedRange,
  SealRequest,
  SettleRequest,
  UnsealRequest,
} from '../merge-api.ts';
import { rareMethod } from './rare-method.ts';

export const rangeSeal = rareMethod('range.seal', {
  meaning: "Seals the source of a merge; answered by its leader, asked by the target's.",
  callers: 'nodes',
  request: SealRequest,
  reply: SealedRange,
});

export const rangeUnseal = rareMethod('range.unseal', {
  meaning: 'Unseals the source of a merge that was refused; answered by its leader.',
  callers: 'nodes',
  request: UnsealRequest,
  reply: nothing,
});

export const rangeSettle = rareMethod('range.settle', {
  meaning:
    'Answered by the node of the replica, leader or not, once the replica has applied its log up to there; UNAVAILABLE before.',
  callers: 'nodes',
  request: SettleRequest,
  reply: nothing,
});

export const rangeRefuseMerge = rareMethod('range.refuseMerge', {
  meaning:
    'Refuses an open round; answered by the leader of the target once it is decided, asked by a node that finds no driver of the round.',
  callers: 'nodes',
  request: MergeRound,
  reply: nothing,
});

export const rangeDecideMerge = rareMethod('range.decideMerge', {
  meaning:
    "Tells the decision on a round; answered by any replica that knows it, for an open round by the target's leader alone.",
  callers: 'nodes',
  request: DecideMergeRequest,
  reply: MergeVerdict,
});
