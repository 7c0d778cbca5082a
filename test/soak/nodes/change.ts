/** A sixth node joins and receives its share of the replicas. Then another node is decommissioned, and ends empty. */
import { type Spread, spreadOf, spreadText } from './cluster-view.ts';
import { isWholeAndBalanced, type LoadReport, MASTERS, type Stage, type StageOptions, withStage } from './stage.ts';

export interface ChangeReport {
  readonly joined: JoinReport;
  readonly left: LeaveReport;
  readonly load: LoadReport;
}

export interface JoinReport {
  readonly balancedMs: number;
  readonly replicas: number;
  readonly leaders: number;
  readonly spread: Spread;
}

export interface LeaveReport {
  readonly emptyMs: number;
  /** The replicas that it had left, according to the masters. */
  readonly replicas: number;
  readonly leaders: number;
  /** The other nodes, once they are balanced. */
  readonly spread: Spread;
}

export function runChange(options: StageOptions): Promise<ChangeReport> {
  return withStage(options, async (stage) => {
    stage.phase('before');
    await stage.calm();
    stage.phase('a node joins');
    const joined = await join(stage);
    stage.phase('between');
    await stage.calm();
    stage.phase('a node is decommissioned');
    const left = await leave(stage);
    stage.phase('after');
    await stage.calm();
    return { joined, left, load: await stage.finish() };
  });
}

/** Starts another node, and waits until it has its share. */
export async function join(stage: Stage): Promise<JoinReport> {
  const node = await stage.cluster.addJoining();
  const beganMs = performance.now();
  node.start();
  await node.untilReady();
  const count = stage.cluster.nodes.filter(({ running }) => running).length;
  const seen = await stage.until(
    `${node.name} has its share`,
    (each) => spreadOf(each).replicas.length === count && isWholeAndBalanced(each),
  );
  const own = seen.nodes.find(({ name }) => name === node.name);
  const report = {
    balancedMs: performance.now() - beganMs,
    replicas: own?.replicas ?? 0,
    leaders: own?.leaders ?? 0,
    spread: spreadOf(seen),
  };
  stage.say(
    `${node.name} has its share after ${(report.balancedMs / 1_000).toFixed(1)} s: ${spreadText(report.spread)}`,
  );
  return report;
}

/** Decommissions a node that is no master, as an operator does, then stops and removes it. */
export async function leave(stage: Stage): Promise<LeaveReport> {
  const node = stage.cluster.node(MASTERS + 2);
  const beganMs = performance.now();
  await stage.command('admin', 'nodes', 'decommission', node.name, '--yes');
  const emptyMs = performance.now() - beganMs;
  const own = (await stage.look()).nodes.find(({ name }) => name === node.name);
  await node.end('SIGTERM');
  await stage.command('admin', 'nodes', 'remove', node.name, '--yes');
  const spread = spreadOf(await stage.until('the others are balanced', isWholeAndBalanced));
  stage.say(`${node.name} is empty after ${(emptyMs / 1_000).toFixed(1)} s; the others: ${spreadText(spread)}`);
  return { emptyMs, replicas: own?.replicas ?? -1, leaders: own?.leaders ?? -1, spread };
}
