import type { Method } from '../rpc/rpc.ts';
import {
  decodeGoOnAlone,
  decodeNodeGroups,
  decodeStrikeOff,
  encodeGoOnAlone,
  encodeNodeGroups,
  encodeStrikeOff,
} from './codec/recovery.ts';
import type { GoOnAloneRequest, NodeGroups, StrikeOffRequest } from './recovery-api.ts';

/** What a node holds of every group; any node answers for itself. */
export const nodeGroups: Method<undefined, NodeGroups> = {
  name: 'node.groups',
  callers: 'nodes',
  encodeRequest: () => null,
  decodeRequest: () => undefined,
  encodeReply: encodeNodeGroups,
  decodeReply: decodeNodeGroups,
};

/** Refused with `UNAVAILABLE` when the replica is not as it was seen, or has heard a leader lately. */
export const nodeGoOnAlone: Method<GoOnAloneRequest, undefined> = {
  name: 'node.goOnAlone',
  callers: 'nodes',
  encodeRequest: encodeGoOnAlone,
  decodeRequest: decodeGoOnAlone,
  encodeReply: () => null,
  decodeReply: () => undefined,
};

/** Answered when it is replicated; `INVALID_ARGUMENT` when one of the nodes is heard. */
export const masterStrikeOff: Method<StrikeOffRequest, undefined> = {
  name: 'master.strikeOff',
  callers: 'nodes',
  encodeRequest: encodeStrikeOff,
  decodeRequest: decodeStrikeOff,
  encodeReply: () => null,
  decodeReply: () => undefined,
};
