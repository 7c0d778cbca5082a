import type { Method } from '../rpc/rpc.ts';
import {
  decodeDecideMergeRequest,
  decodeMergeRound,
  decodeMergeVerdict,
  decodeSealedRange,
  decodeSealRequest,
  decodeSettleRequest,
  decodeUnsealRequest,
  encodeDecideMergeRequest,
  encodeMergeRound,
  encodeMergeVerdict,
  encodeSealedRange,
  encodeSealRequest,
  encodeSettleRequest,
  encodeUnsealRequest,
} from './codec/merge.ts';
import type {
  DecideMergeRequest,
  MergeRound,
  MergeVerdict,
  SealedRange,
  SealRequest,
  SettleRequest,
  UnsealRequest,
} from './merge-api.ts';

/** Answered by the leader of the source of a merge, asked by that of the target. */
export const rangeSeal: Method<SealRequest, SealedRange> = {
  name: 'range.seal',
  callers: 'nodes',
  encodeRequest: encodeSealRequest,
  decodeRequest: decodeSealRequest,
  encodeReply: encodeSealedRange,
  decodeReply: decodeSealedRange,
};

/** The same the other way. */
export const rangeUnseal: Method<UnsealRequest, undefined> = {
  name: 'range.unseal',
  callers: 'nodes',
  encodeRequest: encodeUnsealRequest,
  decodeRequest: decodeUnsealRequest,
  encodeReply: () => null,
  decodeReply: () => undefined,
};

/** Answered by the node of the replica, leader or not, once it is so: `UNAVAILABLE` if it is not yet. */
export const rangeSettle: Method<SettleRequest, undefined> = {
  name: 'range.settle',
  callers: 'nodes',
  encodeRequest: encodeSettleRequest,
  decodeRequest: decodeSettleRequest,
  encodeReply: () => null,
  decodeReply: () => undefined,
};

/**
 * Answered by the leader of the target of a merge, once it is refused or was decided already; asked by a node that sees
 * that nobody drives the round any more.
 */
export const rangeRefuseMerge: Method<MergeRound, undefined> = {
  name: 'range.refuseMerge',
  callers: 'nodes',
  encodeRequest: encodeMergeRound,
  decodeRequest: decodeMergeRound,
  encodeReply: () => null,
  decodeReply: () => undefined,
};

/** Answered by any replica whose state says it; an open round only by the target's leader, asked by that of the source. */
export const rangeDecideMerge: Method<DecideMergeRequest, MergeVerdict> = {
  name: 'range.decideMerge',
  callers: 'nodes',
  encodeRequest: encodeDecideMergeRequest,
  decodeRequest: decodeDecideMergeRequest,
  encodeReply: encodeMergeVerdict,
  decodeReply: decodeMergeVerdict,
};
