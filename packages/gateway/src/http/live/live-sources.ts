/** What each topic of live data is read from. */
import type { AdminApi } from '../../admin/admin-api.ts';
import type { Backend } from '../../backend.ts';
import type { CallInfo } from '../../calls.ts';
import { nodeJson, operatorJson, schedulerJson } from '../cluster/cluster-json.ts';
import { clusterOverview } from '../cluster/cluster-overview.ts';
import { rounded } from '../cluster/history-json.ts';
import type { LiveTopic, NodeNowJson } from '../json/history.ts';
import { rangesSource } from './live-ranges.ts';
import type { LiveSource } from './topic-feed.ts';

export interface LiveSourcesDeps {
  readonly api: AdminApi;
  readonly backend: Pick<Backend, 'view' | 'nodeId'>;
}

const READ_TIMEOUT_MS = 3_000;
const EVERY_MS = 1_000;
/** The masters look at all ranges for an answer, and a gateway calls all nodes: larger clusters are read less often. */
const PER_RANGE_MS = 1;
const PER_NODE_MS = 10;
const OPERATORS_MAX = 100;

/** Numbers that grow by themselves. */
const PASSING: ReadonlySet<string> = new Set([
  ...['silentMs', 'leadingMs', 'maintenanceLeftMs', 'ageMs', 'endedMs', 'pausedMs', 'availableBytes'],
]);

export function liveSources({ api, backend }: LiveSourcesDeps): Readonly<Record<LiveTopic, LiveSource>> {
  // The caller's permission is decided by the stream.
  const call: CallInfo = {
    ...{ timeoutMs: READ_TIMEOUT_MS, callerMs: undefined, seen: { newest: 0 }, principal: undefined },
  };
  const byRanges = (): number => EVERY_MS + backend.view().ranges.length * PER_RANGE_MS;
  return {
    overview: wholeSource('overview', byRanges, () => clusterOverview(api, backend, call)),
    nodes: wholeSource('nodes', byRanges, async () => ({
      nodes: (await api.listNodes({}, call)).nodes.map(nodeJson),
    })),
    operators: wholeSource(
      'operators',
      () => EVERY_MS,
      async () => {
        const asked = { ended: true, rangeId: 0n, limit: OPERATORS_MAX };
        return { operators: (await api.steering.listOperators(asked, call)).operators.map(operatorJson) };
      },
    ),
    schedulers: wholeSource(
      'schedulers',
      () => EVERY_MS,
      async () => ({
        schedulers: (await api.steering.listSchedulers({}, call)).schedulers.map(schedulerJson),
      }),
    ),
    ranges: rangesSource(byRanges, () => api.history.ranges(call)),
    now: wholeSource(
      'now',
      () => EVERY_MS + backend.view().nodes.length * PER_NODE_MS,
      async () => ({
        nodes: await nodesNow(api, backend),
      }),
    ),
  };
}

/** A topic whose events have its whole state. */
function wholeSource<State extends object>(
  topic: LiveTopic,
  everyMs: () => number,
  read: () => Promise<State>,
): LiveSource {
  return {
    ...{ topic, everyMs, read },
    whole: (state) => state,
    changes: (before, now) => (lasting(before) === lasting(now) ? undefined : now),
  };
}

function lasting(state: object): string {
  return JSON.stringify(state, (name, value: unknown) => (PASSING.has(name) ? undefined : value));
}

async function nodesNow(api: AdminApi, backend: Pick<Backend, 'view'>): Promise<readonly NodeNowJson[]> {
  const ids = backend
    .view()
    .nodes.filter(({ state }) => state !== 'down')
    .map(({ descriptor }) => descriptor.nodeId)
    .sort((a, b) => a - b);
  return (await api.history.now(ids)).map(({ nodeId, spanMs, rates }) => {
    const shown = (value: number | undefined): number | null => (value === undefined ? null : rounded(value));
    const { requestsPerS, readsPerS, writesPerS, locksPerS, p50Ms, p99Ms, fsyncP99Ms, commitP99Ms } = rates;
    return {
      ...{ nodeId, spanMs: Math.round(spanMs) },
      ...{ requestsPerS: shown(requestsPerS), readsPerS: shown(readsPerS) },
      ...{ writesPerS: shown(writesPerS), locksPerS: shown(locksPerS), p50Ms: shown(p50Ms), p99Ms: shown(p99Ms) },
      ...{ fsyncP99Ms: shown(fsyncP99Ms), commitP99Ms: shown(commitP99Ms) },
    };
  });
}
