/** A node is killed for good, and no operator does anything about it. */
import { brokenRanges, type ClusterSeen, isBalanced, type Spread, spreadOf, spreadText } from './cluster-view.ts';
import { type LoadReport, MASTERS, REPLICAS, type Stage, type StageOptions, withStage } from './stage.ts';

/** Which node: one with a voter of the masters' group, or one without. */
export type Victim = 'master' | 'data';

export interface DeathReport {
  readonly victim: Victim;
  readonly ranges: number;
  readonly downAfterMs: number;
  readonly repairMs: number;
  /**
   * Times after the kill: until every range had as many live replicas as before, and until all nodes were balanced as
   * well.
   */
  readonly wholeMs: number;
  readonly balancedMs: number;
  readonly spread: Spread;
  readonly load: LoadReport;
}

export function runDeath(options: StageOptions, victim: Victim): Promise<DeathReport> {
  return withStage(options, async (stage) => {
    stage.phase('before');
    await stage.calm();
    stage.phase('after the death');
    const died = await die(stage, victim);
    stage.phase('repaired');
    await stage.calm();
    return { ...died, load: await stage.finish() };
  });
}

/** Kills the node, and waits until the others have replaced its replicas. */
export async function die(stage: Stage, victim: Victim): Promise<Omit<DeathReport, 'load'>> {
  const { ranges, downAfterMs, limits } = stage.options;
  const node = stage.cluster.node(victim === 'master' ? MASTERS : MASTERS + 1);
  await node.end('SIGKILL');
  const beganMs = performance.now();
  const sinceMs = (): number => performance.now() - beganMs;
  const isWhole = (seen: ClusterSeen): boolean => brokenRanges(without(seen, node.name), REPLICAS).length === 0;
  const isOver = (seen: ClusterSeen): boolean => isWhole(seen) && isBalanced(without(seen, node.name));
  const whole = without(await stage.until('every range is whole', isWhole), node.name);
  const wholeMs = sinceMs();
  stage.say(`${node.name} is made up for after ${(wholeMs / 1_000).toFixed(1)} s: ${spreadText(spreadOf(whole))}`);
  const spread = spreadOf(without(await stage.until('all is balanced', isOver), node.name));
  stage.say(`balanced after ${(sinceMs() / 1_000).toFixed(1)} s: ${spreadText(spread)}`);
  const { repairMs } = limits;
  return { victim, ranges, downAfterMs, repairMs, wholeMs, balancedMs: sinceMs(), spread };
}

/** The masters do not know at once that the node is dead, but the test does. */
function without({ nodes, ranges }: ClusterSeen, name: string): ClusterSeen {
  return { ranges, nodes: nodes.map((node) => (node.name === name ? { ...node, state: 'down' } : node)) };
}
