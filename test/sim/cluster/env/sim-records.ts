import { MemoryRecords } from '../../../../packages/cli/src/testing/memory-records.ts';

/** A machine's records about the node on it. */
export class SimRecords extends MemoryRecords {
  /** Whether the node would notice that this one has lost its disk. */
  knows(nodeId: number): boolean {
    return this.knownNodes.some((node) => node.nodeId === nodeId && !node.removed);
  }
}
