import { type RangeDescriptor, type RpcDialer, rangeCheckpoint } from '@remora/protocol';

export interface PrepareSplitDeps {
  readonly nodeId: number;
  readonly dialer: Pick<RpcDialer, 'channel'>;
  readonly checkpoint: () => Promise<void>;
}

/** A node that takes longer, or does not answer, is not waited for: the split is longer there, that is all. */
const PREPARE_TIMEOUT_MS = 10_000;

/** Has every node of a range write what waits in its memory (SL3 of the splitter). */
export async function prepareSplit(
  { nodeId, dialer, checkpoint }: PrepareSplitDeps,
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
  await Promise.all([checkpoint(), ...prepared]);
}
