import type { ReplicaDescriptor } from '@remora/protocol';

/** A range as it really is, whatever the master knows of it. */
export interface SimRange {
  readonly rangeId: number;
  readonly start: Buffer;
  end: Buffer;
  /** Grows with splits and merges. */
  version: number;
  confVersion: number;
  term: number;
  leader: number | undefined;
  /** When an election or a transfer under way ends. */
  leaderAtMs: number | undefined;
  nextLeader: number | undefined;
  voters: Map<number, number>;
  /** Replica id by node, and when it has caught up. */
  learners: Map<number, { readonly replicaId: number; readonly readyAtMs: number }>;
  /** Voters that leave with the joint configuration. */
  outgoing: Map<number, number> | undefined;
  /** Of plain keys as they are now. */
  bytes: number;
  /** Of older versions, of which the masters are not told. */
  olderBytes: number;
  readsPerS: number;
  writesPerS: number;
  /** By how much it grows. */
  writeBytesPerS: number;
  /** Since when it has more load than a range may have. */
  hotSinceMs: number | undefined;
  /** People chose where it begins. */
  readonly chosen: boolean;
}

/** The keys of ranges by their numbers; between two of them is room for splits. */
export function keyOf(n: number): Buffer {
  const key = Buffer.alloc(KEY_BYTES);
  key.writeUIntBE(n * ROOM, 0, KEY_BYTES);
  return key;
}

const KEY_BYTES = 6;
const ROOM = 2 ** 20;

/** An empty key is before all others, or behind them. */
function keyBetween(start: Buffer, end: Buffer): Buffer {
  const from = start.length === 0 ? 0 : start.readUIntBE(0, KEY_BYTES);
  const to = end.length === 0 ? 2 ** (8 * KEY_BYTES) : end.readUIntBE(0, KEY_BYTES);
  const key = Buffer.alloc(KEY_BYTES);
  key.writeUIntBE(Math.floor((from + to) / 2), 0, KEY_BYTES);
  return key;
}

/** The two parts of a range, each with half of what it has; the second one is new. */
export function splitInTwo(range: SimRange, rangeId: number, nextReplicaId: () => number): SimRange {
  const { start, end, voters } = range;
  const at = keyBetween(start, end);
  range.version++;
  range.end = at;
  range.hotSinceMs = undefined;
  for (const what of ['bytes', 'olderBytes', 'readsPerS', 'writesPerS', 'writeBytesPerS'] as const) range[what] /= 2;
  return { ...range, rangeId, start: at, end, voters: new Map([...voters.keys()].map((id) => [id, nextReplicaId()])) };
}

export function absorb(target: SimRange, source: SimRange): void {
  target.version = Math.max(target.version, source.version) + 1;
  target.end = source.end;
  target.hotSinceMs = undefined;
  for (const what of ['bytes', 'olderBytes', 'readsPerS', 'writesPerS', 'writeBytesPerS'] as const) {
    target[what] += source[what];
  }
}

export function isMember(range: SimRange, nodeId: number): boolean {
  return range.voters.has(nodeId) || range.learners.has(nodeId) || range.outgoing?.has(nodeId) === true;
}

export function memberIds(range: SimRange): ReadonlySet<number> {
  return new Set([...range.voters.keys(), ...range.learners.keys(), ...(range.outgoing?.keys() ?? [])]);
}

/** While a configuration is joint, the descriptor lists the voters of both. */
export function replicasOf(range: SimRange): readonly ReplicaDescriptor[] {
  const voters = new Map([...(range.outgoing ?? []), ...range.voters]);
  return [
    ...[...voters].map(([nodeId, replicaId]) => ({ nodeId, replicaId, type: 'voter' as const })),
    ...[...range.learners].map(([nodeId, { replicaId }]) => ({ nodeId, replicaId, type: 'learner' as const })),
  ];
}
