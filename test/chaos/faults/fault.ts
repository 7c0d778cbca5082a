/** What every kind of fault has in common. */
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
  /** The disk of one node, small enough to be filled; absent where none could be mounted. */
  readonly smallDisk: SmallDisk | undefined;
  /** Aborted when faults are to end at once. */
  readonly signal: AbortSignal;
  /** At most so long; less when faults are to end. */
  pause(ms: number): Promise<void>;
  /** A promise of the cluster was broken. */
  report(finding: Finding): void;
}

/** Faults of different categories may befall a cluster at the same time. */
type Category = 'node' | 'network' | 'client' | 'ranges';

/** To add a fault: a file that exports one, and its name in `index.ts`. */
export interface Fault {
  readonly kind: string;
  readonly category: Category;
  /** Why it cannot happen here; undefined: it can. */
  unavailable?(world: FaultWorld): string | undefined;
  /** From its begin to its end, after which everything is as before; resolves to what happened, in a few words. */
  befall(world: FaultWorld, random: Random): Promise<string>;
}

/** Between the two, in ms, short ones more often than long ones. */
export function drawMs(random: Random, minMs: number, maxMs: number): number {
  const spread = maxMs - minMs + 1;
  return minMs + Math.min(random.int(spread), random.int(spread));
}

/** A leader's node as often as any: what happens to leaders matters most. */
export async function drawNode({ cluster }: FaultWorld, random: Random): Promise<number> {
  const leader = random.int(2) === 0 ? await cluster.leader() : undefined;
  return leader ?? 1 + random.int(cluster.nodes.length);
}

/** `n2, the leader,` */
export async function nameOf({ cluster }: FaultWorld, n: number): Promise<string> {
  return (await cluster.leader()) === n ? `n${n}, the leader,` : `n${n}`;
}
