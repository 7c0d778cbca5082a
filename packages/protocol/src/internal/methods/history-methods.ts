import { nothing } from '../../schema/kinds.ts';
import { ActivityReply, ActivityRequest, HeatReply, HeatRequest, NodeNow } from '../heat/history-api.ts';
import { rareMethod } from './rare-method.ts';

export const masterActivity = rareMethod('master.activity', {
  meaning: 'Returns what the nodes measured in the last minutes, as far back as this leader remembers.',
  callers: 'nodes',
  request: ActivityRequest,
  reply: ActivityReply,
});

export const masterHeat = rareMethod('master.heat', {
  meaning: 'Returns the load by minute and key. RESOURCE_EXHAUSTED when too many such requests are in progress.',
  callers: 'nodes',
  request: HeatRequest,
  reply: HeatReply,
});

export const nodeNow = rareMethod('node.now', {
  meaning: 'Returns what the node that is asked has measured in the last seconds.',
  callers: 'nodes',
  request: nothing,
  reply: NodeNow,
});
