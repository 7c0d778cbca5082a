/**
 * A rolling upgrade under load: node by node to the newer release, with leaders on either for a while, back to the
 * older one, and up again; then it is finalized.
 *
 * U1. Nodes end without notice or in good order, as the seed says, and start on their old data with another program.
 * U2. At most one node is away at a time, and the next one follows when the cluster is healthy.
 * U3. Until the upgrade is finalized, a transaction that writes and reads at a later revision than its range has seen
 *     is refused as before; afterwards it is executed. So the gated change is in force, and was not before.
 * U4. Afterwards the older program does not start on the data any more, and says what to install.
 * U5. `/ready`, the metrics and `admin check` of every node show that releases are mixed, or that the upgrade is not
 *     finalized, while that is so, and nothing of it before and afterwards.
 */
import type { Random } from '@remora/base';
import { ServiceError } from '@remora/base';
import { connect } from 'remora';
import { AdminClient } from 'remora/admin';
import { type Finding, violation } from '../../checkers/index.ts';
import { eventually } from '../../e2e/eventually.ts';
import type { NodeProcess } from '../../e2e/node-process.ts';
import type { RangeDesk } from '../changes/range-desk.ts';
import type { ChaosCluster } from '../nodes/chaos-cluster.ts';
import type { Befallen } from '../schedule.ts';
import type { Release, Releases } from './releases.ts';

export interface RollDeps {
  readonly cluster: ChaosCluster;
  readonly desk: RangeDesk;
  readonly releases: Releases;
  readonly random: Random;
  /** The duration of all phases together, about. */
  readonly minutes: number;
  readonly nowMs: () => number;
  readonly befallen: (what: Befallen) => void;
  readonly report: (finding: Finding) => void;
  /** Waits for this long, or less if the run must end. */
  pause(ms: number): Promise<void>;
}

/** The exit code of a node whose data directory belongs to a later version. */
const DATA_DIR = 3;
const KNOWN_WITHIN_MS = 20_000;
/** Ranges that the masters number from the first moment on, and one that is quiet. */
export const UPGRADE_BORDERS: readonly string[] = ['list/', 'quiet/', 'register/', 'txn/'];
/** Of equal length: up, newer, down, older, up, newer, and after the end of the upgrade. */
const PHASES = 7;

export async function rollUpgrade(deps: RollDeps): Promise<void> {
  const { releases, minutes, cluster } = deps;
  const { older, newer } = releases;
  const nodes = cluster.nodes.length;
  const restMs = (minutes * 60_000) / PHASES / nodes;
  const roll = async (to: Release): Promise<void> => {
    for (let n = 1; n <= nodes; n++) {
      await restartWith(deps, n, to);
      await mixLeaders(deps);
      await expectShown(deps, n < nodes ? ['mixedVersions'] : to === newer ? ['upgradeNotFinalized'] : []);
      await deps.pause(restMs);
    }
  };
  await expectShown(deps, []);
  await expectPast(deps, 'refused');
  await roll(newer);
  await expectPast(deps, 'refused');
  await roll(older);
  await roll(newer);
  await deps.pause(restMs);
  await finalize(deps);
  await expectShown(deps, []);
  await expectPast(deps, 'executed');
  await deps.pause(restMs * nodes);
  await olderIsRefused(deps);
}

/** U1, U2. */
async function restartWith(deps: RollDeps, n: number, { version, program }: Release): Promise<void> {
  const { cluster, random, report } = deps;
  const node = cluster.node(n);
  const fromMs = deps.nowMs();
  const signal = random.int(2) === 0 ? 'SIGKILL' : 'SIGTERM';
  const { code } = await node.end(signal);
  if (signal === 'SIGTERM' && code !== 0) {
    report(violation('nodes stop when told to', `${node.name} ended with code ${code}`));
  }
  node.program = program;
  await cluster.bringBack(n);
  await cluster.untilHealthy();
  const what = `${node.name} by ${signal}, and on as ${version}`;
  deps.befallen({ kind: 'other release', what, fromMs, toMs: deps.nowMs() });
}

/** Moves the leaders of ranges to nodes by chance, so that each release leads some. */
async function mixLeaders({ desk, random }: RollDeps): Promise<void> {
  const ranges = await desk.ranges().catch(unlessRefused);
  for (const range of ranges ?? []) {
    const to = range.replicas[random.int(Math.max(1, range.replicas.length))];
    if (to === undefined || to.nodeId === range.leaderNode) continue;
    await desk.carryOut({ kind: 'transfer', range, how: { $case: 'transfer', value: { toNode: BigInt(to.nodeId) } } });
  }
}

async function finalize(deps: RollDeps): Promise<void> {
  const { cluster, releases } = deps;
  const fromMs = deps.nowMs();
  const admin = new AdminClient({
    endpoints: cluster.nodes.map(({ client }) => client),
    timeoutMs: 10_000,
    connectTimeoutMs: 2_000,
  });
  try {
    const { inForce } = await eventually(
      'the upgrade is finalized',
      () => admin.finalizeUpgrade(releases.newer.version).catch(unlessRefused),
      { timeoutMs: KNOWN_WITHIN_MS },
    );
    await eventually(
      'every node knows the version in force',
      async () => (await admin.upgradeStatus()).nodes.every(({ knows }) => knows === inForce),
      { timeoutMs: KNOWN_WITHIN_MS },
    );
    deps.befallen({ kind: 'finalized', what: `version ${inForce}`, fromMs, toMs: deps.nowMs() });
  } finally {
    admin.close();
  }
}

const OF_UPGRADES: readonly string[] = ['mixedVersions', 'upgradeNotFinalized'];

/** U5. */
async function expectShown({ cluster, report }: RollDeps, expected: readonly string[]): Promise<void> {
  for (const node of cluster.nodes) {
    let shown = '';
    const isRight = async (): Promise<boolean> => {
      const views = await viewsOf(node);
      shown = JSON.stringify(views);
      return views.every((names) => names.join() === expected.join());
    };
    const wanted = eventually('the views agree', () => isRight().catch(() => false));
    await wanted.catch(() => {
      const text = `${node.name} shows ${shown} in /ready, metrics and check, not ${JSON.stringify(expected)}`;
      report(violation('every view shows how far an upgrade is', text));
    });
  }
}

/** The conditions of upgrades that `/ready`, the metrics and `admin check` show. */
async function viewsOf(node: NodeProcess): Promise<readonly (readonly string[])[]> {
  const admin = new AdminClient({ endpoints: [node.client], timeoutMs: 10_000, connectTimeoutMs: 2_000 });
  try {
    const response = await fetch(`http://${node.health}/ready`, { signal: AbortSignal.timeout(10_000) });
    const ready = (await response.json()) as { readonly conditions: readonly { readonly name: string }[] };
    const counted = [...(await node.metrics('remora_condition'))].filter(([, count]) => count > 0);
    const metrics = counted.map(([labels]) => /name="(\w+)"/.exec(labels)?.[1] ?? '');
    const { conditions: checked } = await admin.check();
    const views = [ready.conditions.map(({ name }) => name), metrics, checked.map(({ name }) => name)];
    return views.map((names) => names.filter((name) => OF_UPGRADES.includes(name)));
  } finally {
    admin.close();
  }
}

/** U3. Reads a key in a range that nobody writes at a revision that belongs to a change in another range. */
async function expectPast({ cluster, report }: RollDeps, expected: 'refused' | 'executed'): Promise<void> {
  const endpoints = cluster.nodes.map(({ client }) => client);
  await using remora = await connect({ endpoints, discover: false });
  // On a busy machine an answer may be lost; writing the value again does no harm.
  const { revision } = await eventually('a key is written', () =>
    remora.kv.put('txn/newest', 'x').catch(unlessRefused),
  );
  const found = await eventually('the read of the past is answered', async () => {
    try {
      await remora.kv.txn({
        success: [
          { put: QUIET, value: 'x' },
          { get: QUIET, revision },
        ],
      });
      return 'executed';
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'FUTURE_REVISION') return 'refused';
      unlessRefused(error);
      return undefined;
    }
  });
  if (found === expected) return;
  report(violation('what apply makes of an entry follows its version', `a read of the past was ${found}`));
}

/** In a range of its own, to which no load writes. */
const QUIET = 'quiet/past';

/** U4. */
async function olderIsRefused({ cluster, releases, report }: RollDeps): Promise<void> {
  const node = cluster.node(cluster.nodes.length);
  await node.end('SIGTERM');
  node.program = releases.older.program;
  node.start();
  const { code } = await node.exit;
  const says = node.logTail(5);
  if (code !== DATA_DIR || !says.includes(`install Remora ${releases.newer.version}`)) {
    report(violation('an earlier release does not start on later data', `code ${code}: ${says}`));
  }
  node.program = releases.newer.program;
  await cluster.bringBack(cluster.nodes.length);
  await cluster.untilHealthy();
}

function unlessRefused(error: unknown): undefined {
  if (error instanceof ServiceError) return undefined;
  throw error;
}
