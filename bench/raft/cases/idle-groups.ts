/**
 * What groups cost that nobody uses, as their number grows: heartbeats on the wire, CPU and memory of the nodes, and
 * the time until all of them have leaders, who campaign all at once.
 *
 * Three nodes, disk log, leaders spread over the nodes. A heartbeat goes from a leader's node to each other node, so
 * one group has two ordered pairs of nodes that exchange any, and many groups have six: the figure that must not grow
 * is messages per second and such pair.
 *
 * Settings: groups=1,1000,10000  settle=5 (seconds between the last election and the measurement)
 */
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../../test/e2e/eventually.ts';
import { cpuMicros } from '../../proc.ts';
import { table } from '../../report.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf } from '../case.ts';
import { RaftCluster } from '../cluster.ts';
import type { NodeStatus } from '../messages.ts';

const SETTLED_TIMEOUT_MS = 60_000;
/** Two seconds of heartbeats at least, whatever is asked for. */
const SECONDS_MIN = 2;

interface Idle {
  readonly groups: number;
  /** From the start of the processes until every group has a leader. */
  readonly startMs: number;
  /** Heartbeats, without replies, per second and ordered pair of nodes that exchange any. */
  readonly heartbeatsPerPair: number;
  readonly repliesPerPair: number;
  /** Bytes of a heartbeat per group that it names. */
  readonly bytesPerGroup: number;
  /** Other messages of all nodes per second. */
  readonly messagesPerSecond: number;
  /** Of one core, each node. */
  readonly cpuPercent: readonly number[];
  readonly rssBytes: readonly number[];
  readonly heapBytes: readonly number[];
}

export const SETTINGS = ['groups', 'settle'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const results: Idle[] = [];
  for (const groups of numbersOf(context, 'groups', [1, 1000, 10_000])) {
    const result = await measure(context, groups);
    results.push(result);
    context.progress(
      `${groups} groups: ${result.heartbeatsPerPair.toFixed(1)} heartbeats/s and pair, ` +
        `${Math.max(...result.cpuPercent).toFixed(1)} % of a core, ${megabytes(Math.max(...result.rssBytes))} MB`,
    );
  }
  return { data: results, text: render(results), bars: bars(results) };
}

async function measure(context: CaseContext, groups: number): Promise<Idle> {
  const begunMs = performance.now();
  const cluster = await RaftCluster.start(context, {
    name: `${groups}-groups`,
    groupCount: groups,
    log: 'disk',
    leaders: 'spread',
    checkpointMs: 0,
  });
  try {
    const startMs = performance.now() - begunMs;
    await settle(context, cluster);
    return { groups, startMs, ...(await observe(context, cluster)) };
  } finally {
    await cluster.stop();
  }
}

/** Waits until nothing but merged heartbeats is sent. */
async function settle(context: CaseContext, cluster: RaftCluster): Promise<void> {
  const [seconds = 5] = numbersOf(context, 'settle', [5]);
  await pause(seconds * 1000);
  let before = -1;
  await eventually(
    'the groups are at rest',
    async () => {
      const sent = sum(await statuses(cluster), (status) => status.host.messagesSent);
      const same = sent === before;
      before = sent;
      return same;
    },
    { timeoutMs: SETTLED_TIMEOUT_MS, pollMs: 1000 },
  );
}

async function observe(context: CaseContext, cluster: RaftCluster): Promise<Omit<Idle, 'groups' | 'startMs'>> {
  const { nodeIds } = cluster;
  const before = await statuses(cluster);
  const cpuBefore = nodeIds.map((id) => cpuMicros(cluster.pid(id)));
  const begunMs = performance.now();
  await pause(1000 * Math.max(SECONDS_MIN, context.seconds));
  const cpu = nodeIds.map((id, i) => cpuMicros(cluster.pid(id)) - (cpuBefore[i] ?? 0));
  const seconds = (performance.now() - begunMs) / 1000;
  const after = await statuses(cluster);
  const grown = (counter: (status: NodeStatus) => number): number => sum(after, counter) - sum(before, counter);
  const leaders = after.filter(({ leads }) => leads.length > 0).length;
  const pairs = leaders * (nodeIds.length - 1);
  const heartbeats = grown(({ host }) => host.heartbeatsSent);
  const named = grown(({ host }) => host.heartbeatGroupsSent);
  const replies = grown(({ host }) => host.heartbeatRepliesSent);
  const bytes = grown(({ frames }) => frames?.heartbeatBytes ?? 0);
  return {
    heartbeatsPerPair: heartbeats / seconds / pairs,
    repliesPerPair: replies / seconds / pairs,
    bytesPerGroup: bytes / Math.max(1, named), // with the replies
    messagesPerSecond: grown(({ host }) => host.messagesSent) / seconds,
    cpuPercent: cpu.map((micros) => micros / seconds / 10_000),
    rssBytes: after.map(({ rssBytes }) => rssBytes),
    heapBytes: after.map(({ heapBytes }) => heapBytes),
  };
}

async function statuses(cluster: RaftCluster): Promise<readonly NodeStatus[]> {
  return Promise.all(cluster.nodeIds.map((id) => cluster.status(id)));
}

function sum(from: readonly NodeStatus[], counter: (status: NodeStatus) => number): number {
  return from.reduce((total, status) => total + counter(status), 0);
}

function render(results: readonly Idle[]): string {
  const head = ['groups', 'start s', 'heartbeats/s', 'replies/s', 'B/group', 'other/s', 'CPU %', 'RSS MB', 'heap MB'];
  const rows = results.map((result) => [
    String(result.groups),
    (result.startMs / 1000).toFixed(1),
    result.heartbeatsPerPair.toFixed(1),
    result.repliesPerPair.toFixed(1),
    result.bytesPerGroup.toFixed(2),
    result.messagesPerSecond.toFixed(1),
    Math.max(...result.cpuPercent).toFixed(1),
    megabytes(Math.max(...result.rssBytes)),
    megabytes(Math.max(...result.heapBytes)),
  ]);
  return [
    table(head, rows),
    'heartbeats and replies per ordered pair of nodes; B/group: bytes of a heartbeat and its reply per group named;',
    'CPU (of one core) and memory of the node that takes most',
  ].join('\n');
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(0);
}

function bars(results: readonly Idle[]): readonly CaseBar[] {
  const one = results.find(({ groups }) => groups === 1);
  return results.flatMap((result): readonly CaseBar[] => {
    const { groups, heartbeatsPerPair, bytesPerGroup, cpuPercent, rssBytes } = result;
    const found: CaseBar[] = [];
    if (groups === 1000 && one !== undefined) {
      const value = Math.abs(heartbeatsPerPair - one.heartbeatsPerPair);
      found.push({ text: '1,000 groups: heartbeats as with one, ±2', value, unit: '/s', met: value <= 2 });
    }
    if (groups >= 1000) {
      const text = `${groups} groups: under 2 bytes per group and heartbeat`;
      found.push({ text, value: bytesPerGroup, unit: ' B', met: bytesPerGroup < 2 });
    }
    if (groups === 10_000) {
      const cpu = Math.max(...cpuPercent);
      const rss = Math.max(...rssBytes) / 1_000_000;
      found.push({ text: '10,000 groups idle: under 15 % of a core per node', value: cpu, unit: ' %', met: cpu < 15 });
      found.push({ text: '10,000 groups idle: under 600 MB per node', value: rss, unit: ' MB', met: rss < 600 });
    }
    return found;
  });
}
