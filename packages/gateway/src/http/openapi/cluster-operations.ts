/** The operations of `/v1/cluster`. They need root while authentication is on. */
import type { CLUSTER_SCHEMAS } from './cluster-schemas.ts';
import { type Operations, queryParameter } from './operation.ts';
import type { Schema } from './parts.ts';

type Name = keyof typeof CLUSTER_SCHEMAS;

const NODE = '/v1/cluster/nodes/{node}';
const RANGE = '/v1/cluster/ranges/{range}';
const REFUSED = { 409: 'The masters refuse it; the message says why.' };
const NO_RANGE = { 404: 'There is no such range.' };
const STEERS = 'Returns the operator that does it. Look at its progress under /v1/cluster/operators.';

const get = (id: string, answer: Name, summary: string, query: readonly Schema[] = []) => ({
  get: { id, answer, summary, ...(query.length === 0 ? {} : { query }) },
});
const steer = (id: string, body: Name, summary: string) => ({
  post: {
    id,
    body,
    answer: 'ClusterOperator' as const,
    summary,
    description: STEERS,
    errors: { ...REFUSED, ...NO_RANGE },
  },
});
const limit = queryParameter('limit', 'How many at most.', { type: 'integer', minimum: 0 });

export const CLUSTER_OPERATIONS: Operations = {
  '/v1/cluster': get('showCluster', 'Cluster', 'Shows the cluster at a glance: nodes, version, and what is wrong.'),
  '/v1/cluster/health': get(
    'checkCluster',
    'ClusterHealth',
    'Shows what is wrong, and what to do (remora admin check).',
  ),
  '/v1/cluster/nodes': get('listNodes', 'ClusterNodes', 'Lists the nodes.'),
  [`${NODE}/why`]: get('whyNode', 'ClusterWhy', 'Explains what the schedulers think of a node.'),
  [`${NODE}/duty`]: {
    put: {
      ...{ id: 'setNodeDuty', body: 'SetDuty', answer: 'ClusterDone', errors: REFUSED },
      summary: 'Drains a node, takes it into maintenance, decommissions or removes it, or lets it serve again.',
    },
  },
  [`${NODE}/log-level`]: {
    put: { id: 'setLogLevel', body: 'SetLogLevel', answer: 'ClusterLogLevel', summary: "Sets a node's log level." },
  },
  '/v1/cluster/ranges': get('listRanges', 'ClusterRanges', 'Lists ranges in the order of their keys.', [
    queryParameter(
      'from',
      'The first one has this place, or lies behind it: key:orders/42, or `next` of the last page.',
      {
        type: 'string',
      },
    ),
    limit,
  ]),
  '/v1/cluster/hot-ranges': get('listHotRanges', 'ClusterRanges', 'Lists the ranges with the most load.', [
    queryParameter('by', 'What counts. Default: requests.', {
      enum: ['requests', 'reads', 'readBytes', 'writes', 'writeBytes'],
    }),
    limit,
  ]),
  [RANGE]: {
    get: {
      ...{ id: 'showRange', answer: 'ClusterRange', summary: 'Shows a range with its replicas.' },
      errors: NO_RANGE,
    },
  },
  [`${RANGE}/why`]: {
    get: {
      ...{ id: 'whyRange', answer: 'ClusterWhy', errors: NO_RANGE },
      summary: 'Explains what the schedulers think of a range.',
    },
  },
  [`${RANGE}/split`]: steer('splitRange', 'SplitRange', 'Splits a range.'),
  [`${RANGE}/merge`]: steer('mergeRange', 'MergeRange', 'Merges the range behind it into this one.'),
  [`${RANGE}/move`]: steer('moveReplica', 'MoveReplica', 'Moves a replica to another node.'),
  [`${RANGE}/add-replica`]: steer('addReplica', 'ReplicaNode', 'Adds a replica on a node.'),
  [`${RANGE}/remove-replica`]: steer('removeReplica', 'ReplicaNode', "Removes a node's replica."),
  [`${RANGE}/transfer`]: {
    post: {
      ...{
        id: 'transferLeader',
        body: 'TransferLeader',
        answer: 'ClusterTransfer',
        errors: { ...REFUSED, ...NO_RANGE },
      },
      summary: 'Hands the leadership of a range to another node.',
    },
  },
  '/v1/cluster/operators': get('listOperators', 'ClusterOperators', 'Lists the operators under way, or ended ones.', [
    queryParameter('ended', 'Ended ones, the newest first.', { type: 'boolean' }),
    queryParameter('range', 'Only of this range.', { type: 'integer', minimum: 1 }),
    limit,
  ]),
  '/v1/cluster/operators/{operator}': {
    delete: { id: 'cancelOperator', answer: 'ClusterOperator', summary: 'Cancels an operator.', errors: REFUSED },
  },
  '/v1/cluster/schedulers': get('listSchedulers', 'ClusterSchedulers', 'Lists the schedulers.'),
  '/v1/cluster/schedulers/{scheduler}': {
    put: {
      ...{ id: 'pauseScheduler', body: 'PauseScheduler', answer: 'ClusterSchedulers' },
      summary: 'Pauses a scheduler for a time, or resumes it.',
    },
  },
  '/v1/cluster/rebalance': {
    get: {
      ...{ id: 'planRebalance', answer: 'ClusterRebalance' },
      summary: 'Shows what the schedulers would change now, and changes nothing.',
    },
    post: {
      ...{ id: 'rebalance', body: 'NoFields', answer: 'ClusterRebalance' },
      summary: 'Lets the schedulers make these changes now.',
    },
  },
  '/v1/cluster/settings': get('listSettings', 'ClusterSettings', 'Lists the settings of the cluster.'),
  '/v1/cluster/settings/{setting}': {
    put: { id: 'setSetting', body: 'SetSetting', answer: 'ClusterSettings', summary: 'Changes a setting.' },
  },
  '/v1/cluster/upgrade': get('showUpgrade', 'ClusterUpgrade', 'Shows how far an upgrade is.'),
  '/v1/cluster/upgrade/finalize': {
    post: {
      ...{ id: 'finalizeUpgrade', body: 'FinalizeUpgrade', answer: 'ClusterUpgrade', errors: REFUSED },
      summary: 'Brings a version into force. No node can go back afterwards.',
    },
  },
};
