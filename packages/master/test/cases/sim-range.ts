import type { ReplicaDescriptor } from '@remora/protocol';

/** A range as it really is, whatever the master knows of it. */
export interface SimRange {
  readonly rangeId: number;
  readonly start: Buffer;
  readonly end: Buffer;
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
  bytes: number;
  readsPerS: number;
  writesPerS: number;
}

export function keyOf(n: number): Buffer {
  const key = Buffer.alloc(4);
  key.writeUInt32BE(n);
  return key;
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
