import { type RangeDescriptor, type RpcDialer, rangeCheckpoint } from '@remora/protocol';
import type { Checkpointer } from '../checkpointer.ts';
import { Splitter, type SplitterDeps } from './splitter.ts';

export interface PrepareSplitDeps {
  readonly nodeId: number;
  readonly dialer: Pick<RpcDialer, 'channel'>;
  readonly checkpointer: Pick<Checkpointer, 'run'>;
}

/** A node that takes longer, or does not answer, is not waited for: the split is longer there, that is all. */
const PREPARE_TIMEOUT_MS = 5_000;

/**
 * Has every node of a range write what waits in its memory (SL3 of the splitter), one after the other: while one does,
 * the others commit what comes. This one is the last, as no write of the range can do without it.
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

/** A splitter that prepares its splits so. */
export function splitterOf(deps: PrepareSplitDeps & Omit<SplitterDeps, 'prepare'>): Splitter {
  return new Splitter({ ...deps, prepare: (range) => prepareSplit(deps, range) });
}
