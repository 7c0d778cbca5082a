/** What faults need of a world, and of the nodes in it: whatever runs in them. */
import type { SimDisk } from '@remora/base/testing';
import type { SimLoop } from '../env/loop.ts';
import type { ProcessClock } from '../env/process-clock.ts';
import type { DiskStall } from '../env/process-disk.ts';
import type { LinkRule } from '../network.ts';

interface FaultNode {
  readonly id: number;
  readonly up: boolean;
  readonly clock: ProcessClock;
  readonly lives: number;
  readonly disk: SimDisk;
  readonly stall: DiskStall;
  readonly options: { readonly diskMs: number };
  /** A fault of the disk was injected into this life: it may end by it. */
  diskFault: boolean;
  /** Whether the disk takes no more: the node cannot start. */
  diskFull: boolean;
  /** What is done when the process died of its disk. */
  onDied: () => void;
  /** The process ends now; with `power`, so does the machine's power. */
  end(power: boolean): void;
}

export interface FaultWorld {
  readonly loop: SimLoop;
  readonly nodes: readonly FaultNode[];
  readonly network: { add(rule: LinkRule): () => void };
  readonly options: { readonly electionMs: number; readonly driftPerMille: number };
  /** The nth node, over and over. */
  nodeAt(i: number): FaultNode;
  /** The id of a leader's node as often as of any: what happens to leaders matters most. */
  target(drawn: number): number;
  /** Starts a node again that had ended, if nobody did before. */
  startAgain(node: FaultNode): void;
  /** Whether this node's machine is one that gets suspended; such a one's wall clock never jumps back. */
  suspends(nodeId: number): boolean;
}
