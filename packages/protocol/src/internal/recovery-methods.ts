import { method } from '../rpc/method.ts';
import { nothing } from '../schema/kinds.ts';
import { GoOnAloneRequest, NodeGroups, StrikeOffRequest } from './recovery-api.ts';

export const nodeGroups = method('node.groups', {
  meaning: 'Reports what the node holds of every group; any node answers for itself.',
  callers: 'nodes',
  request: nothing,
  reply: NodeGroups,
});

export const nodeGoOnAlone = method('node.goOnAlone', {
  meaning: 'Makes a replica the only one of its group; UNAVAILABLE if it has changed, or heard a leader lately.',
  callers: 'nodes',
  request: GoOnAloneRequest,
  reply: nothing,
});

export const masterStrikeOff = method('master.strikeOff', {
  meaning: 'Gives nodes up for dead; answered when that is replicated, INVALID_ARGUMENT if one of them is heard.',
  callers: 'nodes',
  request: StrikeOffRequest,
  reply: nothing,
});
