/**
 * What a large snapshot under way costs another group: the latency of its operations without one, and while a node
 * that could not be reached gets one over a link that is cut three times. Both loads run in every round; the median counts.
 *
 * Settings: mib=256 (bytes of the snapshot)  rate=64 (MiB per second that a node sends, 0: no limit)  inflight=16
 */
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../../e2e/eventually.ts';
import type { RunResult } from '../../measure.ts';
import { median } from '../../quantile.ts';
import { table } from '../../report.ts';
import { type CaseContext, type CaseResult, numbersOf } from '../case.ts';
import { RaftCluster } from '../cluster.ts';
import { CuttingProxy } from '../cutting-proxy.ts';
import { FIRST_GROUP } from '../messages.ts';

const MIB = 1024 * 1024;
const LATE_NODE = 3;
const SENDER = 1;
const BULK = FIRST_GROUP;
const BUSY = FIRST_GROUP + 1;
const CUTS = 3;
const P99_FACTOR_MAX = 2;
const INSTALLED_TIMEOUT_MS = 120_000;

interface Round {
  readonly without: RunResult;
  readonly during: RunResult;
  /** From the node's being reachable to the installation. */
  readonly seconds: number;
  /** Share of the snapshot that was sent when the load ended, in percent: 100 means that the load outlasted it. */
  readonly sentPercent: number;
  readonly resumed: number;
}

export async function run(context: CaseContext): Promise<CaseResult> {
  const bytes = (numbersOf(context, 'mib', [256])[0] ?? 0) * MIB;
  const rounds: Round[] = [];
  for (let round = 0; round < context.runs; round++) {
    const measured = await measureRound(context, `round-${round}`, bytes);
    rounds.push(measured);
    const { without, during, seconds } = measured;
    context.progress(
      `p99 ${without.p99Ms.toFixed(2)} ms without, ${during.p99Ms.toFixed(2)} ms during ${seconds.toFixed(1)} s of snapshot`,
    );
  }
  const factor = median(rounds.map(({ without, during }) => during.p99Ms / without.p99Ms));
  return {
    data: { bytes, rounds },
    text: render(rounds, bytes),
    bars: [
      {
        text: `p99 of another group during a snapshot of ${bytes / MIB} MiB with ${CUTS} breaks: at most ${P99_FACTOR_MAX} times that without`,
        value: factor,
        unit: '×',
        met: factor <= P99_FACTOR_MAX,
      },
    ],
  };
}

async function measureRound(context: CaseContext, name: string, bytes: number): Promise<Round> {
  const rate = (numbersOf(context, 'rate', [64])[0] ?? 0) * MIB;
  const inflight = numbersOf(context, 'inflight', [16])[0] ?? 1;
  const proxy = new CuttingProxy();
  const cluster = await RaftCluster.start(context, {
    name,
    groupCount: 2,
    log: 'memory',
    hostOptions: { tailEntries: 0, tailBytes: 0, snapshotBytesPerSecondMax: rate },
    checkpointMs: 200,
    snapshotBytes: bytes,
    proxy: { nodeId: LATE_NODE, proxy },
  });
  const load = (groupId: number, seconds: number) =>
    cluster.load({ groups: [groupId], inflightPerGroup: inflight, payloadBytes: 16, entries: 'single', seconds });
  try {
    await load(BULK, 1); // the node that cannot be reached misses it
    await pause(500); // the next checkpoint lets the log go
    const begunMs = performance.now();
    proxy.open();
    const cutting = cutAlong(cluster, proxy, bytes);
    const during = await load(BUSY, context.seconds);
    const sent = (await cluster.status(SENDER)).host.snapshotBytesSent;
    await cutting;
    await eventually(
      'the snapshots are installed',
      async () => (await cluster.status(LATE_NODE)).host.snapshotBytesReceived >= bytes,
      { timeoutMs: INSTALLED_TIMEOUT_MS, pollMs: 20 },
    );
    const seconds = (performance.now() - begunMs) / 1000;
    const without = await load(BUSY, context.seconds);
    const { snapshotsResumed } = (await cluster.status(SENDER)).host;
    return {
      without,
      during,
      seconds,
      sentPercent: Math.min(100, Math.round((100 * sent) / bytes)),
      resumed: snapshotsResumed,
    };
  } finally {
    await cluster.stop();
    proxy.close();
  }
}

/** Cuts the link each time that a further quarter has been sent. */
async function cutAlong(cluster: RaftCluster, proxy: CuttingProxy, bytes: number): Promise<void> {
  for (let cut = 1; cut <= CUTS; cut++) {
    await eventually(
      `part ${cut} of the snapshot is sent`,
      async () => (await cluster.status(SENDER)).host.snapshotBytesSent >= (cut * bytes) / (CUTS + 1),
      { timeoutMs: INSTALLED_TIMEOUT_MS, pollMs: 50 },
    );
    proxy.cut();
  }
}

function render(rounds: readonly Round[], bytes: number): string {
  const rows = rounds.map(({ without, during, seconds, sentPercent, resumed }) => [
    without.opsPerSecond.toFixed(0),
    without.p50Ms.toFixed(2),
    without.p99Ms.toFixed(2),
    during.opsPerSecond.toFixed(0),
    during.p50Ms.toFixed(2),
    during.p99Ms.toFixed(2),
    seconds.toFixed(1),
    (bytes / MIB / seconds).toFixed(0),
    `${sentPercent} %`,
    String(resumed),
  ]);
  const head = [
    'ops/s',
    'p50 ms',
    'p99 ms',
    'during: ops/s',
    'p50 ms',
    'p99 ms',
    'snapshot s',
    'MiB/s',
    'sent in load',
    'resumed',
  ];
  return table(head, rows);
}
