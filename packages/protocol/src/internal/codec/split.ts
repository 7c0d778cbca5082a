import type { Command, CommandResult } from '../command.ts';
import { asBytes, asCount, asFields, asList } from './check.ts';
import { decodeEpoch, decodeRangeDescriptor, encodeEpoch, encodeRangeDescriptor } from './descriptor.ts';

type Split = Extract<Command, { type: 'split' }>;
type SplitResult = Extract<CommandResult, { type: 'split' }>;

/** The fields of a split, without the tag of commands. */
export function encodeSplit({ at, epoch, childId, replicas, keys, bytes }: Split): unknown[] {
  const places = replicas.map(({ nodeId, replicaId }) => [nodeId, replicaId]);
  return [at, encodeEpoch(epoch), childId, places, keys, bytes];
}

export function decodeSplit(raw: unknown): Split {
  const f = asFields(raw, 6, 'split');
  return {
    type: 'split',
    at: asBytes(f[0], 'split.at'),
    epoch: decodeEpoch(f[1]),
    childId: asCount(f[2], 'split.childId'),
    replicas: asList(f[3], 'split.replicas', decodePlace),
    keys: asCount(f[4], 'split.keys'),
    bytes: asCount(f[5], 'split.bytes'),
  };
}

function decodePlace(raw: unknown): Split['replicas'][number] {
  const f = asFields(raw, 2, 'split.replica');
  return { nodeId: asCount(f[0], 'split.nodeId'), replicaId: asCount(f[1], 'split.replicaId') };
}

export function encodeSplitResult({ left, right }: SplitResult): unknown[] {
  return [encodeRangeDescriptor(left), encodeRangeDescriptor(right)];
}

export function decodeSplitResult(raw: unknown): SplitResult {
  const f = asFields(raw, 2, 'split result');
  return { type: 'split', left: decodeRangeDescriptor(f[0]), right: decodeRangeDescriptor(f[1]) };
}
