/** The part of a world, and of its nodes, that faults use, whatever runs in them. */
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
  /** A fault of the disk was injected into this life, which may end because of it. */
  diskFault: boolean;
  /** Whether the disk is full: the node cannot start. */
  diskFull: boolean;
  /** Called when the process died because of its disk. */
  onDied: () => void;
  /** The process ends now; with `power`, so does the machine's power. */
  end(power: boolean): void;
}

export interface FaultWorld {
  readonly loop: SimLoop;
  readonly nodes: readonly FaultNode[];
  readonly network: { add(rule: LinkRule): () => void };
  readonly options: { readonly electionMs: number; readonly driftPerMille: number };
  /** The nth node, cyclically. */
  nodeAt(i: number): FaultNode;
  /** The id of a leader's node as often as of any: events at leaders matter most. */
  target(drawn: number): number;
  /** Starts an ended node again, unless it runs already. */
  startAgain(node: FaultNode): void;
  /** Whether this node's machine is one that gets suspended; the wall clock of such a machine never jumps back. */
  suspends(nodeId: number): boolean;
}
