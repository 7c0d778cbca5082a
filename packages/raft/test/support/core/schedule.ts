/** What a random number makes happen in a test cluster. */
import type { TestCluster } from './core-cluster.ts';
import type { TestNode } from './core-node.ts';

/** One random number is one step: its low part says what happens, the rest to whom. */
export function perform(cluster: TestCluster, number: number, changes: boolean): void {
  const count = cluster.nodes.length;
  const rest = Math.floor(number / 100);
  const node = cluster.nodes[rest % count] as TestNode;
  const pick = Math.floor(rest / count);
  const other = cluster.nodes[pick % count] as TestNode;
  const roll = number % 100;
  // With changes there are more nodes, and more has to happen before one follows the other.
  const some = changes ? cluster.nodes : [node];
  if (roll < 26) for (let i = 0; i < 4 * some.length; i++) cluster.deliver(pick + i * 7);
  else if (roll < 29) cluster.deliver(pick, true);
  else if (roll < 32) cluster.drop(pick);
  else if (roll < 48) for (const each of some) cluster.sync(each);
  else if (roll < 50) for (const each of cluster.nodes) cluster.answerRead(each, pick);
  else if (roll < 58) for (const each of some) for (let i = 0; i < 3; i++) cluster.apply(each);
  else if (roll < 69) for (const each of cluster.nodes) cluster.tick(each);
  else if (roll < 70) for (const each of cluster.nodes) cluster.review(each);
  else if (roll < 78) for (const each of cluster.nodes) cluster.propose(each);
  else if (roll < 80) {
    if (changes) for (const each of cluster.nodes) cluster.change(each, pick);
    else for (const each of cluster.nodes) cluster.propose(each);
  } else if (roll < 83) for (const each of cluster.nodes) cluster.read(each);
  else if (roll < 84) cluster.crash(node, pick);
  else if (roll < 87) for (const each of cluster.nodes) cluster.restart(each);
  else if (roll < 88) cluster.cutLink(node, other);
  else if (roll < 90) cluster.healLinks();
  else if (roll < 93) cluster.compact(node, pick % 3);
  else if (roll < 96) cluster.moveSnapshot(pick, pick % 4 === 0);
  else if (roll < 97) cluster.transfer(node, other);
  else if (roll < 98) cluster.unreachable(node, other);
  else if (roll < 99)
    for (let i = 0; i < 12; i++) cluster.tick(node); // it wakes late, or is impatient
  else isolate(cluster, node);
}

function isolate(cluster: TestCluster, node: TestNode): void {
  for (const each of cluster.nodes) {
    cluster.cutLink(each, node);
    cluster.cutLink(node, each);
  }
}
