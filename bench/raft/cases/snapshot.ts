/**
 * What a large snapshot under way costs another group: the latency of its operations without one, and while a node that
 * could not be reached gets one over a link that is cut three times. Both loads run in every round; the median counts.
 * When the load has ended the rest of the snapshot is sent to nodes with nothing else to do.
 *
 * Settings: mib=256 (bytes of the snapshot)  rate=32, busy=4 (MiB per second that a node sends, and sends and receives
 * while it has other work, 0: no limit; the defaults of the nodes unless given)  load=closed,open  inflight=16 (of the
 * closed load)  ops=5000 (per second, of the open one)
 *
 * All processes share the machine's cores, the proxy that cuts the link among them: a closed load takes all that it can
 * get, and loses what the snapshot costs; an open one shows what a group that has room notices of it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../../test/e2e/eventually.ts';
import { median } from '../../../test/support/quantile.ts';
import type { RunResult } from '../../measure.ts';
import { table } from '../../report.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf, wordsOf } from '../case.ts';
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
/** Operations of an open load that may wait for their answers. */
const OPEN_INFLIGHT_MAX = 4_096;
const INSTALLED_TIMEOUT_MS = 120_000;

interface Round {
  readonly load: LoadKind;
  readonly nodes: 'these' | 'before';
  readonly without: RunResult;
  readonly during: RunResult;
  /** From the node's being reachable to the installation. */
  readonly seconds: number;
  /** Share of the snapshot that was sent when the load ended, in percent: 100 means that the load outlasted it. */
  readonly sentPercent: number;
  readonly resumed: number;
}

/** `closed`: as many in flight as set, however fast they are answered. `open`: so many begun per second. */
type LoadKind = 'closed' | 'open';
const LOADS: readonly LoadKind[] = ['closed', 'open'];

export const SETTINGS = ['mib', 'rate', 'busy', 'load', 'inflight', 'ops'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const bytes = (numbersOf(context, 'mib', [256])[0] ?? 0) * MIB;
  const rounds: Round[] = [];
  for (let round = 0; round < context.runs; round++) {
    for (const load of wordsOf(context, 'load', LOADS)) {
      for (const nodes of context.baseline === undefined ? (['these'] as const) : (['before', 'these'] as const)) {
        const measured = await measureRound(context, { load, nodes, name: `${nodes}-${load}-${round}` }, bytes);
        rounds.push(measured);
        const { without, during, seconds } = measured;
        context.progress(
          `${nodes}, ${load}: p99 ${without.p99Ms.toFixed(2)} ms without, ${during.p99Ms.toFixed(2)} ms during ${seconds.toFixed(1)} s of snapshot`,
        );
      }
    }
  }
  return {
    data: { bytes, rounds },
    text: render(rounds, bytes),
    bars: LOADS.flatMap((load) => barOf(rounds, load, bytes)),
  };
}

function barOf(rounds: readonly Round[], load: LoadKind, bytes: number): CaseBar[] {
  const own = rounds.filter((round) => round.nodes === 'these' && round.load === load);
  if (own.length === 0) return [];
  const factor = median(own.map(({ without, during }) => during.p99Ms / without.p99Ms));
  return [
    {
      text: `p99 of another group under a load that is ${load}, during a snapshot of ${bytes / MIB} MiB with ${CUTS} breaks: at most ${P99_FACTOR_MAX} times that without`,
      value: factor,
      unit: '×',
      met: factor <= P99_FACTOR_MAX,
    },
  ];
}

async function measureRound(
  context: CaseContext,
  kind: Pick<Round, 'load' | 'nodes'> & { readonly name: string },
  bytes: number,
): Promise<Round> {
  const rate = numbersOf(context, 'rate', [])[0];
  const busy = numbersOf(context, 'busy', [])[0];
  const inflight = numbersOf(context, 'inflight', [16])[0] ?? 1;
  const opsPerSecond = kind.load === 'open' ? (numbersOf(context, 'ops', [5_000])[0] ?? 1) : 0;
  const proxy = new CuttingProxy();
  const cluster = await RaftCluster.start(context, {
    name: kind.name,
    groupCount: 2,
    log: 'memory',
    ...(kind.nodes === 'before' && context.baseline !== undefined && { root: context.baseline }),
    hostOptions: {
      ...{ tailEntries: 0, tailBytes: 0 },
      ...(rate !== undefined && { snapshotBytesPerSecondMax: rate * MIB }),
      ...(busy !== undefined && { snapshotBytesPerSecondBusy: busy * MIB }),
    },
    checkpointMs: 200,
    snapshotBytes: bytes,
    proxy: { nodeId: LATE_NODE, proxy },
  });
  const load = (groupId: number, seconds: number) =>
    cluster.load({
      ...{ groups: [groupId], payloadBytes: 16, entries: 'single', seconds, opsPerSecond },
      inflightPerGroup: opsPerSecond > 0 ? OPEN_INFLIGHT_MAX : inflight,
    });
  try {
    await load(BULK, 1); // the node that cannot be reached misses it
    await pause(500); // the next checkpoint lets the log go
    const begunMs = performance.now();
    proxy.open();
    const cutting = cutAlong(cluster, proxy, context.seconds, bytes);
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
      load: kind.load,
      nodes: kind.nodes,
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

/** Cuts the link with equal pauses while the load is measured, each time once bytes have passed, until all are sent. */
async function cutAlong(cluster: RaftCluster, proxy: CuttingProxy, seconds: number, bytes: number): Promise<void> {
  const sentNow = async () => (await cluster.status(SENDER)).host.snapshotBytesSent;
  let sent = 0;
  for (let cut = 1; cut <= CUTS && sent < bytes; cut++) {
    await pause((seconds * 1_000) / (CUTS + 1));
    await eventually(`more of the snapshot is sent before cut ${cut}`, async () => (await sentNow()) > sent, {
      timeoutMs: INSTALLED_TIMEOUT_MS,
      pollMs: 50,
    });
    proxy.cut();
    sent = await sentNow();
  }
}

function render(rounds: readonly Round[], bytes: number): string {
  const rows = rounds.map(({ load, nodes, without, during, seconds, sentPercent, resumed }) => [
    load,
    nodes,
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
    'load',
    'nodes',
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
