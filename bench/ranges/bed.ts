/** What the cases have in common: a cluster, a client, and what an administrator does to it. */
import { connect, type RemoraClient } from 'remora';
import { AdminClient, type RangeChangeRequest } from 'remora/admin';
import { eventually } from '../../test/e2e/eventually.ts';
import { type Cluster, type ClusterOptions, withCluster } from '../../test/e2e/harness.ts';
import { type CaseContext, numbersOf } from '../raft/case.ts';

export const TIMEOUT_MS = 60_000;
const FILL_BYTES = 1_024;
const FILL_AT_ONCE = 128;
/** Longer than any case. */
const SCHEDULERS_PAUSED_MS = 3_600_000;

export interface Bed {
  readonly cluster: Cluster;
  readonly client: RemoraClient;
  readonly admin: AdminClient;
}

/** Runs a case with a cluster of its own, in which nothing is balanced meanwhile. */
export function withBed<T>(options: ClusterOptions, use: (bed: Bed) => Promise<T>): Promise<T> {
  return withCluster(options, async (cluster) => {
    const { endpoints } = cluster;
    await using client = await connect({ endpoints, requestTimeout: '30s' });
    const admin = new AdminClient({ endpoints, timeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS });
    try {
      await pauseSchedulers(admin);
      return await use({ cluster, client, admin });
    } finally {
      admin.close();
    }
  });
}

async function pauseSchedulers(admin: AdminClient): Promise<void> {
  const schedulers = await eventually('the masters have a leader', () => admin.schedulers());
  for (const { name } of schedulers) await admin.pauseScheduler(name, SCHEDULERS_PAUSED_MS);
}

/** A setting of a case that is one number. */
export function setting(context: CaseContext, name: string, fallback: number): number {
  return numbersOf(context, name, [fallback])[0] ?? fallback;
}

/** Puts values of 1 KiB under the keys that `keyOf` gives, many at a time. */
export async function fill(client: RemoraClient, mib: number, keyOf: (n: number) => string): Promise<void> {
  const values = mib * (2 ** 20 / FILL_BYTES);
  const value = Buffer.alloc(FILL_BYTES, 'x');
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < values) await client.kv.put(keyOf(next++), value);
  };
  await Promise.all(Array.from({ length: FILL_AT_ONCE }, worker));
}

/** Has a range changed, and waits until that is done. */
export async function changeRange(admin: AdminClient, rangeId: number, change: RangeChangeRequest): Promise<void> {
  const begun = await admin.changeRange(await admin.range(rangeId), change);
  const ended = await eventually(
    `operator ${begun.id} has ended`,
    async () => {
      const operators = await admin.operators({ ended: true, rangeId, limit: 10 });
      return operators.find(({ id }) => id === begun.id);
    },
    { timeoutMs: TIMEOUT_MS, pollMs: 50 },
  );
  if (ended.status !== 'success') throw new Error(`operator ${begun.id} ${ended.status}: ${ended.outcome}`);
}

/** Has the leader of a range hand over to the next node that has a replica, and waits until that one leads. */
export async function transferLeader(
  { admin, cluster }: Pick<Bed, 'admin' | 'cluster'>,
  rangeId: number,
): Promise<void> {
  const { replicas, leaderNode } = await admin.range(rangeId);
  const nodes = replicas.map(({ nodeId }) => nodeId);
  const to = nodes[(nodes.indexOf(leaderNode) + 1) % nodes.length] ?? 0;
  await admin.transferLeader(rangeId, to);
  await eventually(`node ${to} leads range ${rangeId}`, () => leads(cluster, to, rangeId), {
    pollMs: 100,
    timeoutMs: TIMEOUT_MS,
  });
}

/** Whether a node says that it leads a range. */
export async function leads(cluster: Cluster, node: number, rangeId: number): Promise<boolean> {
  return (await cluster.node(node).metrics('remora_range_leader')).get(`range="${rangeId}"`) === 1;
}
