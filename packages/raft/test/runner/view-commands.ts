/** Commands that let everything happen, and that show what there is. */
import type { Command } from './command.ts';
import type { Args } from './datadriven.ts';
import { at, name, showConf, showEntry, showProgress } from './format.ts';
import { nodesOf, summary } from './named-nodes.ts';
import type { World } from './world.ts';

export const VIEW_COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['stabilize', stabilize],
  ['status', status],
  ['raft-log', raftLog],
]);

/** `stabilize 1 2`: everything that can happen among them happens; `silently` tells the outcome only. */
function stabilize(world: World, args: Args): void {
  const silently = args.flag('silently');
  const nodes = nodesOf(world, args);
  world.stabilize(nodes.map((node) => node.id));
  if (!silently) return;
  world.takeLines();
  for (const node of nodes) summary(world, node);
}

function status(world: World, args: Args): void {
  for (const node of nodesOf(world, args)) {
    summary(world, node);
    for (const progress of node.core.status().progress) world.tell(`  ${showProgress(progress)}`);
  }
}

/** What is durable, and what is not yet. */
function raftLog(world: World, args: Args): void {
  for (const node of nodesOf(world, args)) {
    const { hardState, start, entries, checkpoint: held } = node.disk;
    const { term, vote, commit } = hardState;
    world.tell(`${name(node.id)} durable: term=${term} vote=${name(vote)} commit=${commit}, checkpoint ${at(held)}`);
    world.tell(`  after ${at(start)}: ${entries.map(showEntry).join(', ') || 'no entries'}`);
    world.tell(`  ${showConf(held.conf)}`);
    if (node.unsynced.length > 0) world.tell(`  counts as durable up to ${node.core.status().stableIndex}`);
    for (const write of node.unsynced) {
      world.tell(`  under way #${write.mark.sequence}: ${write.entries.map(showEntry).join(', ') || 'no entries'}`);
    }
  }
}
