import { type RangeDescriptor, type RpcDialer, rangeCheckpoint } from '@remora/protocol';
import type { Checkpointer } from '../checkpointer.ts';
import { Splitter, type SplitterDeps } from './splitter.ts';

export interface PrepareSplitDeps {
  readonly nodeId: number;
  readonly dialer: Pick<RpcDialer, 'channel'>;
  readonly checkpointer: Pick<Checkpointer, 'run'>;
}

/** A node that takes longer, or does not answer, is not waited for: the split is longer there, that is all. */
const PREPARE_TIMEOUT_MS = 10_000;

/** Has every node of a range write what waits in its memory (SL3 of the splitter). */
async function prepareSplit(
  { nodeId, dialer, checkpointer }: PrepareSplitDeps,
  { rangeId, replicas }: RangeDescriptor,
): Promise<void> {
  const others = replicas.filter((replica) => replica.nodeId !== nodeId);
  const prepared = others.map(
    (replica) =>
      new Promise<void>((resolve) => {
        const options = { timeoutMs: PREPARE_TIMEOUT_MS };
        dialer.channel(replica.nodeId).call(rangeCheckpoint, { rangeId }, options, () => resolve());
      }),
  );
  await Promise.all([checkpointer.run(), ...prepared]);
}

/** A splitter that prepares its splits so. */
export function splitterOf(deps: PrepareSplitDeps & Omit<SplitterDeps, 'prepare'>): Splitter {
  return new Splitter({ ...deps, prepare: (range) => prepareSplit(deps, range) });
}
