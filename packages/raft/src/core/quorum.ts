/**
 * Majorities, including those of joint configurations.
 *
 * Q1. While a configuration is joint, every decision needs a majority of the incoming *and* of the outgoing voters
 *     (dissertation §4.3).
 * Q2. In a joint decision, an empty set of voters agrees to everything. A configuration without any voters decides
 *     nothing, because no replica in it campaigns.
 */
import type { ConfState, ReplicaId } from './types.ts';

export type VoteResult = 'won' | 'lost' | 'pending';

/** The largest number that a quorum has reached; `reached` returns each voter's number. */
export function quorumIndex(conf: ConfState, reached: (id: ReplicaId) => number): number {
  const incoming = majorityIndex(conf.voters, reached);
  if (conf.votersOutgoing.length === 0) return incoming;
  return Math.min(incoming, majorityIndex(conf.votersOutgoing, reached));
}

/** The state of a vote: `votes` holds the answers so far. */
export function voteResult(conf: ConfState, votes: ReadonlyMap<ReplicaId, boolean>): VoteResult {
  const incoming = majorityVote(conf.voters, votes);
  if (conf.votersOutgoing.length === 0) return incoming;
  const outgoing = majorityVote(conf.votersOutgoing, votes);
  if (incoming === 'lost' || outgoing === 'lost') return 'lost';
  return incoming === 'won' && outgoing === 'won' ? 'won' : 'pending';
}

/** Whether the replicas for which `holds` is true form a quorum. */
export function isQuorum(conf: ConfState, holds: (id: ReplicaId) => boolean): boolean {
  return isMajority(conf.voters, holds) && (conf.votersOutgoing.length === 0 || isMajority(conf.votersOutgoing, holds));
}

/** Reused between calls: the core is synchronous, and every acknowledgement comes through here. */
const scratch: number[] = [];

function majorityIndex(voters: readonly ReplicaId[], reached: (id: ReplicaId) => number): number {
  const n = voters.length;
  if (n === 0) return Number.MAX_SAFE_INTEGER; // Q2
  for (let i = 0; i < n; i++) {
    const value = reached(voters[i] ?? 0);
    let j = i;
    for (; j > 0 && (scratch[j - 1] ?? 0) > value; j--) scratch[j] = scratch[j - 1] ?? 0;
    scratch[j] = value;
  }
  return scratch[n - 1 - Math.floor(n / 2)] ?? 0; // ascending: this one and all above it are a majority
}

function majorityVote(voters: readonly ReplicaId[], votes: ReadonlyMap<ReplicaId, boolean>): VoteResult {
  if (voters.length === 0) return 'won'; // Q2
  let yes = 0;
  let no = 0;
  for (const id of voters) {
    const vote = votes.get(id);
    if (vote === true) yes++;
    else if (vote === false) no++;
  }
  const needed = Math.floor(voters.length / 2) + 1;
  if (yes >= needed) return 'won';
  return voters.length - no < needed ? 'lost' : 'pending';
}

function isMajority(voters: readonly ReplicaId[], holds: (id: ReplicaId) => boolean): boolean {
  let count = 0;
  for (const id of voters) if (holds(id)) count++;
  return voters.length === 0 || count > voters.length / 2;
}
