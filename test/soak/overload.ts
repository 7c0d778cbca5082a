/**
 * The gateways of a cluster have a limit of requests per second, and are offered a multiple of it. Before and after
 * that they are offered half the limit. Meanwhile sessions of well-behaved clients hold locks.
 */
import { connect } from 'remora';
import { type Cluster, withCluster } from '../e2e/harness.ts';
import type { HoldersResult, HoldersSpec } from './holders.ts';
import { startLoad } from './load-process.ts';
import { RAW_PREFIX, type RawLoadResult, type RawLoadSpec } from './raw-load.ts';

export interface OverloadOptions {
  /** The number of requests per second that a gateway accepts. */
  readonly limit: number;
  /** The offered load, as a multiple of the limit. */
  readonly times: number;
  readonly seconds: number;
  /** The duration before the overload, and the same after it. */
  readonly calmSeconds: number;
  readonly sessions: number;
  readonly sessionTtlMs: number;
  readonly say?: (line: string) => void;
}

export interface OverloadReport {
  readonly options: Pick<OverloadOptions, 'limit' | 'times' | 'seconds' | 'sessions'>;
  readonly load: RawLoadResult;
  readonly holders: HoldersResult;
  /** Puts of the load that the cluster has applied, by the versions of its keys. */
  readonly applied: number;
  /** The gateway's counters. */
  readonly gateway: { readonly admitted: number; readonly refused: number };
}

const CONNECTIONS = 4;
const ETCD_EVERY = 10;
const TURN_WORKERS = 4;
/** The largest fraction of the limit that turns at locks may take: an acquire and a release each. */
const TURN_PART = 0.1;
const KEYS_AT_ONCE = 2_000;

export async function runOverload(options: OverloadOptions): Promise<OverloadReport> {
  const say = options.say ?? (() => {});
  const flags = { 'requests-per-second-max': String(options.limit) };
  return withCluster({ flags }, async (cluster) => {
    const { holders, load } = await withLoads(cluster, options, say);
    const [applied, gateway] = await Promise.all([appliedPuts(cluster), gatewayCounts(cluster)]);
    const { limit, times, seconds, sessions } = options;
    return { options: { limit, times, seconds, sessions }, load, holders, applied, gateway };
  });
}

async function withLoads(
  cluster: Cluster,
  options: OverloadOptions,
  say: (line: string) => void,
): Promise<{ readonly holders: HoldersResult; readonly load: RawLoadResult }> {
  const leader = cluster.node(await cluster.leader());
  const { limit, times, seconds, calmSeconds } = options;
  const holdersSpec: HoldersSpec = {
    endpoints: cluster.endpoints,
    sessions: options.sessions,
    ttlMs: options.sessionTtlMs,
    workers: TURN_WORKERS,
    restMs: (2 * TURN_WORKERS * 1_000) / (TURN_PART * limit),
  };
  const rawSpec: RawLoadSpec = {
    endpoint: leader.client,
    connections: CONNECTIONS,
    etcdEvery: ETCD_EVERY,
    phases: [
      { name: 'before', ratePerSecond: limit / 2, seconds: calmSeconds },
      { name: 'during', ratePerSecond: limit * times, seconds },
      { name: 'after', ratePerSecond: limit / 2, seconds: calmSeconds },
    ],
  };
  const holders = startLoad('load:holders', holdersSpec, cluster.dir);
  let raw: ReturnType<typeof startLoad> | undefined;
  try {
    await holders.message('holding');
    say(
      `${options.sessions} sessions hold a lock each; offering ${limit / 2}, then ${limit * times} requests per second`,
    );
    raw = startLoad('load:raw', rawSpec, cluster.dir);
    const load = (await raw.message('result')) as unknown as RawLoadResult;
    holders.send({ type: 'stop' });
    return { load, holders: (await holders.message('result')) as unknown as HoldersResult };
  } finally {
    await Promise.all([holders.stop(), raw?.stop()]);
  }
}

/** Each put makes one version of a key. */
async function appliedPuts(cluster: Cluster): Promise<number> {
  await using client = await connect({ endpoints: cluster.endpoints });
  const { kvs } = await client.kv.range({ prefix: RAW_PREFIX }, { limit: KEYS_AT_ONCE, keysOnly: true });
  return kvs.reduce((sum, { version }) => sum + version, 0);
}

async function gatewayCounts(cluster: Cluster): Promise<{ readonly admitted: number; readonly refused: number }> {
  let admitted = 0;
  let refused = 0;
  for (const node of cluster.nodes) {
    const requests = await node.metrics('remora_gateway_requests_total');
    admitted += (requests.get('class="ordinary"') ?? 0) + (requests.get('class="charged"') ?? 0);
    refused += (await node.metrics('remora_gateway_refused_total')).get('reason="rate"') ?? 0;
  }
  return { admitted, refused };
}
