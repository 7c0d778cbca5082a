/** What commands have in common: the nodes that they name, and what is told of one. */
import { type Args, toNumber } from './datadriven.ts';
import { name } from './format.ts';
import type { ScenarioNode } from './node.ts';
import type { World } from './world.ts';

/** The node named, which must run. */
export function nodeOf(world: World, args: Args): ScenarioNode {
  return world.running(toNumber(args.word()));
}

/** The nodes named, or all that run. */
export function nodesOf(world: World, args: Args): ScenarioNode[] {
  const words = args.words();
  if (words.length > 0) return words.map((word) => world.running(toNumber(word)));
  return [...world.nodes.values()].filter((node) => node.up);
}

/** Its role, its term, and how far its log is. */
export function summary(world: World, node: ScenarioNode): void {
  const { role, term, leader, commit, applied, lastIndex } = node.core.status();
  world.tell(
    `${name(node.id)} ${role} term=${term} leader=${name(leader)} last=${lastIndex} commit=${commit} applied=${applied}`,
  );
}
