/**
 * `/v1/cluster`: the calls of `remora.v1.Admin` over HTTP.
 *
 * CR1. A route asks for the permission that its call needs before it reads anything.
 * CR2. Changes are POST, PUT and DELETE. No GET changes anything: a link cannot act.
 */
import type { PlainNeed } from '@remora/auth';
import { readRoutingKey } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type { AdminApi } from '../../admin/admin-api.ts';
import { ADMINISTERS, CHECKS, LOOKS } from '../../admin/admin-needs.ts';
import type { Backend } from '../../backend.ts';
import type { CallInfo } from '../../calls.ts';
import { type Fields, invalid } from '../fields.ts';
import { onlyThese, type Target, text, wholeNumber } from '../targets.ts';
import {
  healthJson,
  nodeJson,
  operatorJson,
  rangeJson,
  rangesJson,
  rebalanceJson,
  schedulerJson,
  settingJson,
  upgradeJson,
} from './cluster-json.ts';
import { clusterOverview } from './cluster-overview.ts';

interface ClusterCall {
  readonly api: AdminApi;
  readonly backend: Pick<Backend, 'view' | 'nodeId'>;
  readonly info: CallInfo;
  readonly query: Target['query'];
  readonly fields: Fields;
  /** A part of the path, in place of its name in braces. */
  readonly param: (name: string) => string;
}

export interface ClusterRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly needs: readonly PlainNeed[];
  /** Its name in the audit log. */
  readonly action: string;
  /** The names that its query may have. */
  readonly query: readonly string[];
  run(call: ClusterCall): Promise<unknown>;
}

const NODE = '/v1/cluster/nodes/{node}';
const RANGE = '/v1/cluster/ranges/{range}';
const BY = new Map([
  ['requests', ''],
  ['reads', 'reads'],
  ['readBytes', 'read_bytes'],
  ['writes', 'writes'],
  ['writeBytes', 'write_bytes'],
]);

export const CLUSTER_ROUTES: readonly ClusterRoute[] = [
  looks('/v1/cluster', 'overview', [], ({ api, backend, info }) => clusterOverview(api, backend, info), CHECKS),
  looks(
    '/v1/cluster/health',
    'checkCluster',
    [],
    async ({ api, info }) => healthJson(await api.checkCluster({}, info)),
    CHECKS,
  ),
  looks('/v1/cluster/nodes', 'listNodes', [], async ({ api, info }) => ({
    nodes: (await api.listNodes({}, info)).nodes.map(nodeJson),
  })),
  looks(`${NODE}/why`, 'why', [], ({ api, info, param }) =>
    api.steering.why({ nodeId: idOf(param('node'), 'node'), rangeId: 0n }, info),
  ),
  changes('PUT', `${NODE}/duty`, 'setNodeDuty', ({ api, info, param, fields }) => {
    const duty = fields.required('duty', fields.text('duty'));
    const forMs = BigInt(fields.durationMs('for', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 0);
    fields.end();
    return api.steering.setNodeDuty({ nodeId: idOf(param('node'), 'node'), duty, forMs }, info);
  }),
  changes('PUT', `${NODE}/log-level`, 'setLogLevel', ({ api, info, param, fields }) => {
    const level = fields.required('level', fields.text('level'));
    fields.end();
    return api.setLogLevel({ nodeId: idOf(param('node'), 'node'), level }, info);
  }),
  looks('/v1/cluster/ranges', 'listRanges', ['from', 'limit'], async ({ api, info, query }) => {
    const from = Buffer.from(routingKey(query.get('from'), 'from'));
    const limit = wholeNumber(query, 'limit', 0);
    return rangesJson(await api.listRanges({ from, limit: Math.min(limit, LIMIT_MAX), rangeId: 0n }, info));
  }),
  looks('/v1/cluster/hot-ranges', 'listHotRanges', ['by', 'limit'], async ({ api, info, query }) => {
    const asked = query.get('by');
    const by = BY.get(asked === undefined ? 'requests' : text(asked, 'by'));
    if (by === undefined) throw invalid(`by: expected one of ${[...BY.keys()].join(', ')}`);
    const limit = Math.min(wholeNumber(query, 'limit', 0), LIMIT_MAX);
    return rangesJson(await api.listHotRanges({ by, limit }, info));
  }),
  looks(RANGE, 'listRanges', [], async ({ api, info, param }) => {
    const { ranges } = await api.listRanges({ from: Buffer.alloc(0), limit: 1, rangeId: rangeOf(param) }, info);
    const [range] = ranges;
    if (range === undefined) throw invalid(`there is no range ${param('range')}`, { httpStatus: 404 });
    return rangeJson(range);
  }),
  looks(`${RANGE}/why`, 'why', [], ({ api, info, param }) =>
    api.steering.why({ rangeId: rangeOf(param), nodeId: 0n }, info),
  ),
  steers('split', ({ fields }) => {
    const at = fields.text('at');
    return { $case: 'split', value: { at: Buffer.from(at === undefined ? [] : readKey(at, 'at')) } };
  }),
  steers('merge', ({ fields }) => ({ $case: 'merge', value: { source: node(fields, 'source') } })),
  steers('move', ({ fields }) => ({
    $case: 'move',
    value: { fromNode: node(fields, 'from'), toNode: node(fields, 'to') },
  })),
  steers('add-replica', ({ fields }) => ({ $case: 'addReplica', value: { node: node(fields, 'node') } })),
  steers('remove-replica', ({ fields }) => ({ $case: 'removeReplica', value: { node: node(fields, 'node') } })),
  changes('POST', `${RANGE}/transfer`, 'transferLeader', ({ api, info, param, fields }) => {
    const toNode = node(fields, 'to');
    fields.end();
    return api.transferLeader({ rangeId: rangeOf(param), toNode }, info);
  }),
  looks('/v1/cluster/operators', 'listOperators', ['ended', 'range', 'limit'], async ({ api, info, query }) => {
    const limit = Math.min(wholeNumber(query, 'limit', 0), LIMIT_MAX);
    const rangeId = BigInt(wholeNumber(query, 'range', 0));
    const { operators } = await api.steering.listOperators({ ended: flag(query, 'ended'), rangeId, limit }, info);
    return { operators: operators.map(operatorJson) };
  }),
  changes('DELETE', '/v1/cluster/operators/{operator}', 'cancelOperator', async ({ api, info, param, fields }) => {
    fields.end();
    return operatorJson(await api.steering.cancelOperator({ id: idOf(param('operator'), 'operator') }, info));
  }),
  looks('/v1/cluster/schedulers', 'listSchedulers', [], async ({ api, info }) =>
    schedulersJson(await api.steering.listSchedulers({}, info)),
  ),
  changes('PUT', '/v1/cluster/schedulers/{scheduler}', 'pauseScheduler', async ({ api, info, param, fields }) => {
    const paused = fields.required(
      'pausedFor',
      fields.durationMs('pausedFor', { min: 0, max: Number.MAX_SAFE_INTEGER }),
    );
    fields.end();
    return schedulersJson(await api.steering.pauseScheduler({ name: param('scheduler'), forMs: BigInt(paused) }, info));
  }),
  looks('/v1/cluster/rebalance', 'rebalance', [], async ({ api, info }) =>
    rebalanceJson(await api.steering.rebalance({ dryRun: true }, info)),
  ),
  changes('POST', '/v1/cluster/rebalance', 'rebalance', async ({ api, info, fields }) => {
    fields.end();
    return rebalanceJson(await api.steering.rebalance({ dryRun: false }, info));
  }),
  looks('/v1/cluster/settings', 'listSettings', [], async ({ api, info }) =>
    settingsJson(await api.listSettings({}, info)),
  ),
  changes('PUT', '/v1/cluster/settings/{setting}', 'setSetting', async ({ api, info, param, fields }) => {
    const value = fields.required('value', fields.text('value'));
    fields.end();
    return settingsJson(await api.setSetting({ name: param('setting'), value }, info));
  }),
  looks('/v1/cluster/upgrade', 'getUpgrade', [], async ({ api, info }) => upgradeJson(await api.getUpgrade({}, info))),
  changes('POST', '/v1/cluster/upgrade/finalize', 'finalizeUpgrade', async ({ api, info, fields }) => {
    const version = fields.required('version', fields.text('version'));
    fields.end();
    return upgradeJson(await api.finalizeUpgrade({ version }, info));
  }),
];

/** The masters have smaller limits of their own. */
const LIMIT_MAX = 10_000;

type Run = ClusterRoute['run'];

/** A query. */
export function looks(path: string, action: string, query: readonly string[], run: Run, needs = LOOKS): ClusterRoute {
  return {
    ...{ method: 'GET', path, needs, action, query },
    run(call) {
      onlyThese(call.query, query);
      call.fields.end();
      return run(call);
    },
  };
}

function changes(method: 'POST' | 'PUT' | 'DELETE', path: string, action: string, run: Run): ClusterRoute {
  return {
    ...{ method, path, action, query: [], needs: ADMINISTERS },
    run(call) {
      onlyThese(call.query, []);
      return run(call);
    },
  };
}

/** A change of a range, which answers with the operator that carries it out. */
function steers(name: string, change: (call: ClusterCall) => admin.ChangeRangeRequest['change']): ClusterRoute {
  return changes('POST', `${RANGE}/${name}`, 'changeRange', async (call) => {
    const { api, info, param, fields } = call;
    const asked = change(call);
    const epoch = epochOf(fields);
    fields.end();
    return operatorJson(await api.steering.changeRange({ rangeId: rangeOf(param), change: asked, ...epoch }, info));
  });
}

/** The epoch that the caller saw: if the range has changed since, nothing is done. By default, its present one. */
function epochOf(fields: Fields): { readonly confVersion: bigint; readonly version: bigint } {
  const read = (name: string): bigint => BigInt(fields.integer(name, { min: 1, max: Number.MAX_SAFE_INTEGER }) ?? 0);
  return { confVersion: read('confVersion'), version: read('version') };
}

function node(fields: Fields, name: string): bigint {
  return BigInt(fields.required(name, fields.integer(name, { min: 1, max: Number.MAX_SAFE_INTEGER })));
}

function rangeOf(param: ClusterCall['param']): bigint {
  return idOf(param('range'), 'range');
}

function idOf(value: string, what: string): bigint {
  if (/^[1-9]\d{0,14}$/.test(value)) return BigInt(value);
  throw invalid(`the ${what} in the path must be a number above 0`);
}

function flag(query: Target['query'], name: string): boolean {
  const value = query.get(name);
  if (value === undefined) return false;
  const shown = text(value, name);
  if (shown === 'true' || shown === 'false') return shown === 'true';
  throw invalid(`${name} must be true or false`);
}

export function routingKey(value: Uint8Array | undefined, name: string): Uint8Array {
  return value === undefined ? new Uint8Array(0) : readKey(text(value, name), name);
}

function readKey(value: string, name: string): Uint8Array {
  const read = readRoutingKey(value);
  if (read === undefined) throw invalid(`${name}: expected a place such as key:orders/42 or lock:orders/42`);
  if (!read.ok) throw invalid(`${name}: expected ${read.expected}`);
  return read.key;
}

const schedulersJson = ({ schedulers }: admin.ListSchedulersResponse) => ({
  schedulers: schedulers.map(schedulerJson),
});
const settingsJson = ({ settings }: admin.ListSettingsResponse) => ({ settings: settings.map(settingJson) });
