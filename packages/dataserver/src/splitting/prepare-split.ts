import { type RangeDescriptor, type RpcDialer, rangeCheckpoint } from '@remora/protocol';
import type { Checkpointer } from '../checkpointer.ts';
import { Splitter, type SplitterDeps } from './splitter.ts';

export interface PrepareSplitDeps {
  readonly nodeId: number;
  readonly dialer: Pick<RpcDialer, 'channel'>;
  readonly checkpointer: Pick<Checkpointer, 'run'>;
}

/** A node that answers later, or not at all, is not waited for. Its split then takes longer; nothing else changes. */
const PREPARE_TIMEOUT_MS = 5_000;

/**
 * Has every node of a range write what waits in its memory (SL3 of the splitter), one node after the other: while one
 * node writes, the others go on committing. This node is the last, because every write of the range needs it.
 */
async function prepareSplit(
  { nodeId, dialer, checkpointer }: PrepareSplitDeps,
  { rangeId, replicas }: RangeDescriptor,
): Promise<void> {
  const options = { timeoutMs: PREPARE_TIMEOUT_MS };
  for (const replica of replicas) {
    if (replica.nodeId === nodeId) continue;
    await new Promise<void>((resolve) => {
      dialer.channel(replica.nodeId).call(rangeCheckpoint, { rangeId }, options, () => resolve());
    });
  }
  await checkpointer.run();
}

/** Returns a splitter that prepares its splits with `prepareSplit`. */
export function splitterOf(deps: PrepareSplitDeps & Omit<SplitterDeps, 'prepare'>): Splitter {
  return new Splitter({ ...deps, prepare: (range) => prepareSplit(deps, range) });
}
