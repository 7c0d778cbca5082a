/** What all kinds of faults have in common. */
import type { Random } from '@remora/base';
import type { Finding } from '../../checkers/index.ts';
import type { RangeDesk } from '../changes/range-desk.ts';
import type { ClientFleet } from '../clients/client-fleet.ts';
import type { ChaosCluster } from '../nodes/chaos-cluster.ts';
import type { SmallDisk } from '../nodes/small-disk.ts';

export interface FaultWorld {
  readonly cluster: ChaosCluster;
  readonly clients: ClientFleet;
  readonly ranges: RangeDesk;
  /** The disk of one node, small enough to be filled. Absent where none could be mounted. */
  readonly smallDisk: SmallDisk | undefined;
  /** Aborts when faults must end at once. */
  readonly signal: AbortSignal;
  /** Waits for this long, or less if faults must end. */
  pause(ms: number): Promise<void>;
  /** A promise of the cluster was broken. */
  report(finding: Finding): void;
}

/** Faults of different categories may happen at the same time. */
type Category = 'node' | 'network' | 'client' | 'ranges';

/** To add a fault: a file that exports one, and its name in `index.ts`. */
export interface Fault {
  readonly kind: string;
  readonly category: Category;
  /** Why the fault cannot happen here. Undefined: it can. */
  unavailable?(world: FaultWorld): string | undefined;
  /**
   * Runs the fault from its beginning to its end, after which everything is as before. Resolves to a short description
   * of what happened.
   */
  befall(world: FaultWorld, random: Random): Promise<string>;
}

/** Draws a time between the two, in ms. Short times are more frequent than long ones. */
export function drawMs(random: Random, minMs: number, maxMs: number): number {
  const spread = maxMs - minMs + 1;
  return minMs + Math.min(random.int(spread), random.int(spread));
}

/** Draws a leader's node as often as any node: faults of leaders matter most. */
export async function drawNode({ cluster }: FaultWorld, random: Random): Promise<number> {
  const leader = random.int(2) === 0 ? await cluster.leader() : undefined;
  return leader ?? 1 + random.int(cluster.nodes.length);
}

/** `n2, the leader,` */
export async function nameOf({ cluster }: FaultWorld, n: number): Promise<string> {
  return (await cluster.leader()) === n ? `n${n}, the leader,` : `n${n}`;
}
