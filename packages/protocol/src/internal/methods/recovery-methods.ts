import { nothing } from '../../schema/kinds.ts';
import { GoOnAloneRequest, NodeGroups, StrikeOffRequest } from '../recovery-api.ts';
import { rareMethod } from './rare-method.ts';

export const nodeGroups = rareMethod('node.groups', {
  meaning: 'Reports what the node holds of every group; any node answers for itself.',
  callers: 'nodes',
  request: nothing,
  reply: NodeGroups,
});

export const nodeGoOnAlone = rareMethod('node.goOnAlone', {
  meaning: 'Makes a replica the only one of its group; UNAVAILABLE if it has changed, or heard a leader lately.',
  callers: 'nodes',
  request: GoOnAloneRequest,
  reply: nothing,
});

export const masterStrikeOff = rareMethod('master.strikeOff', {
  meaning: 'Gives nodes up for dead; answered when that is replicated, INVALID_ARGUMENT if one of them is heard.',
  callers: 'nodes',
  request: StrikeOffRequest,
  reply: nothing,
});
