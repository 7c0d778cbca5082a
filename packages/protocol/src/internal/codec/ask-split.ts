import type { AskSplitReply, AskSplitRequest } from '../split-api.ts';
import { asBytes, asCount, asFields, asList, wireWords } from './check.ts';
import { decodeRangeDescriptor, encodeRangeDescriptor } from './descriptor.ts';

const CAUSES = wireWords('cause of a split', ['size', 'load', 'admin']);

export function encodeAskSplit({ range, at, cause }: AskSplitRequest): unknown[] {
  return [encodeRangeDescriptor(range), at ?? null, CAUSES.encode(cause)];
}

export function decodeAskSplit(raw: unknown): AskSplitRequest {
  const f = asFields(raw, 3, 'ask for a split');
  return {
    range: decodeRangeDescriptor(f[0]),
    at: f[1] === null ? undefined : asBytes(f[1], 'split.at'),
    cause: CAUSES.decode(f[2]),
  };
}

export function encodeAskSplitReply({ childId, replicas }: AskSplitReply): unknown[] {
  return [childId, replicas.map(({ nodeId, replicaId }) => [nodeId, replicaId])];
}

export function decodeAskSplitReply(raw: unknown): AskSplitReply {
  const f = asFields(raw, 2, 'ids for a split');
  const replicas = asList(f[1], 'split.replicas', (place) => {
    const [nodeId, replicaId] = asFields(place, 2, 'split.replica');
    return { nodeId: asCount(nodeId, 'split.nodeId'), replicaId: asCount(replicaId, 'split.replicaId') };
  });
  return { childId: asCount(f[0], 'split.childId'), replicas };
}
