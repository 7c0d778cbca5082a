/** All nodes are restarted, one by one: as the operator's manual says, or only with a signal. */

import { runHere } from '../../e2e/command-line.ts';
import { eventually } from '../../e2e/eventually.ts';
import type { NodeProcess } from '../../e2e/node-process.ts';
import { type LoadReport, type Stage, type StageOptions, withStage } from './stage.ts';

export interface RestartReport {
  readonly nodes: readonly RestartedNode[];
  readonly load: LoadReport;
}

export interface RestartedNode {
  readonly name: string;
  readonly maintained: boolean;
  /**
   * The ranges that it led when the stop was requested, then those without a leader, as its peers saw it, after it had
   * stopped.
   */
  readonly led: number;
  readonly exitCode: number | null;
  readonly stoppedMs: number;
}

export function runRestart(options: StageOptions): Promise<RestartReport> {
  return withStage(options, async (stage) => {
    stage.phase('before');
    await stage.calm();
    const nodes: RestartedNode[] = [];
    for (const maintained of [true, false]) {
      stage.phase(maintained ? 'restarts in maintenance' : 'restarts by SIGTERM alone');
      for (const node of stage.cluster.nodes) nodes.push(await restart(stage, node, { maintained }));
    }
    stage.phase('after');
    await stage.calm();
    return { nodes, load: await stage.finish() };
  });
}

export async function restart(
  stage: Stage,
  node: NodeProcess,
  { maintained }: { readonly maintained: boolean },
): Promise<RestartedNode> {
  await quiet(stage);
  if (maintained) await maintenance(stage, node);
  const led = (await stage.look()).nodes.find(({ name }) => name === node.name)?.leaders ?? 0;
  const beganMs = performance.now();
  const { code: exitCode } = await node.end('SIGTERM');
  const stoppedMs = performance.now() - beganMs;
  node.start();
  await node.untilReady();
  if (maintained) await stage.command('admin', 'nodes', 'undrain', node.name);
  stage.say(`${node.name} led ${led} ranges, stopped in ${(stoppedMs / 1_000).toFixed(1)} s with ${exitCode}`);
  return { name: node.name, maintained, led, exitCode, stoppedMs };
}

/** The masters refuse it while a peer is silent. A busy machine can make a peer silent after the check. */
function maintenance(stage: Stage, node: NodeProcess): Promise<string> {
  const order = () => stage.command('admin', 'nodes', 'maintenance', node.name, '--for', '10m');
  return eventually('maintenance is accepted', order, { timeoutMs: stage.options.limits.waitMs, pollMs: 500 });
}

/** As the manual says: the next node follows only when nothing is wrong. */
function quiet({ cluster, options }: Stage): Promise<boolean> {
  const probe = async (): Promise<boolean> => {
    const { code, out } = await runHere(cluster.endpoints, ['admin', 'check']);
    if (code !== 0) throw new Error(out);
    return true;
  };
  return eventually('nothing is wrong', probe, { timeoutMs: options.limits.waitMs, pollMs: 100 });
}
