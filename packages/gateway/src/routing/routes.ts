import { type Bytes, type Clock, spanContains } from '@remora/base';
import { lockSpan, namespaceSpan } from '@remora/lock';
import type { ClusterView, Command, Query, RangeDescriptor, RangeInfo, RangeReply } from '@remora/protocol';
import { KV_SPACE, kvRoutingKey, LEASE_SPACE } from '@remora/protocol';

/** An estimate of a range's time is used this long, then renewed before the next command. */
const TIME_FRESH_MS = 5_000;

interface Known {
  leaderNode: number;
  /** The term that named the leader: older news is ignored. */
  term: number;
  timeMs: number;
  timeAtMs: number;
}

/**
 * What this gateway knows of ranges: which covers a key (from the master's view), who leads it and what time it has
 * (from answers). All of it may be out of date; answers correct it.
 */
export class Routes {
  readonly #clock: Clock;
  readonly #view: () => ClusterView;
  readonly #known = new Map<number, Known>();

  constructor(clock: Clock, view: () => ClusterView) {
    this.#clock = clock;
    this.#view = view;
  }

  find(key: Bytes): RangeDescriptor | undefined {
    return this.#view().ranges.find((range) => spanContains(range, key));
  }

  byId(rangeId: number): RangeDescriptor | undefined {
    return this.#view().ranges.find((range) => range.rangeId === rangeId);
  }

  /** The node that is thought to lead the range; 0 when unknown. */
  leader(rangeId: number): number {
    return this.#known.get(rangeId)?.leaderNode ?? 0;
  }

  learnLeader(rangeId: number, leaderNode: number): void {
    this.#get(rangeId).leaderNode = leaderNode;
  }

  /** Forgets a leader that did not answer, unless another is known by now. */
  distrust(rangeId: number, node: number): void {
    const known = this.#get(rangeId);
    if (known.leaderNode === node) known.leaderNode = 0;
  }

  /** Only a leader knows the range's time; what a follower says of it may be old. */
  learnInfo(info: RangeInfo, node: number): void {
    const known = this.#get(info.rangeId);
    if (info.term < known.term) return;
    if (info.leaderNode !== 0) known.leaderNode = info.leaderNode;
    if (info.leaderNode === node) this.#learnTime(known, info.term, info.rangeTimeMs);
  }

  learnReply(rangeId: number, node: number, reply: RangeReply): void {
    const known = this.#get(rangeId);
    if (reply.raftTerm < known.term) return;
    known.leaderNode = node;
    this.#learnTime(known, reply.raftTerm, reply.rangeTimeMs);
  }

  learnTime(rangeId: number, timeMs: number): void {
    const known = this.#get(rangeId);
    this.#learnTime(known, known.term, timeMs);
  }

  #learnTime(known: Known, term: number, timeMs: number): void {
    known.term = term;
    known.timeMs = timeMs;
    known.timeAtMs = this.#clock.monotonicMs();
  }

  /** The range's time, reckoned on from its last answer; undefined when that is too long ago. */
  timeMs(rangeId: number): number | undefined {
    const known = this.#known.get(rangeId);
    if (known === undefined || known.timeAtMs < 0) return undefined;
    const elapsedMs = this.#clock.monotonicMs() - known.timeAtMs;
    return elapsedMs > TIME_FRESH_MS ? undefined : Math.floor(known.timeMs + elapsedMs);
  }

  /** The latest time of any range, however old the answer. */
  anyTimeMs(): number | undefined {
    let latest: number | undefined;
    for (const known of this.#known.values()) {
      if (known.timeAtMs < 0) continue;
      const timeMs = Math.floor(known.timeMs + this.#clock.monotonicMs() - known.timeAtMs);
      latest = Math.max(latest ?? 0, timeMs);
    }
    return latest;
  }

  #get(rangeId: number): Known {
    let known = this.#known.get(rangeId);
    if (known === undefined) {
      const leaderNode = this.#view().leaders.find(([id]) => id === rangeId)?.[1] ?? 0;
      known = { leaderNode, term: 0, timeMs: 0, timeAtMs: -1 };
      this.#known.set(rangeId, known);
    }
    return known;
  }
}

/** The key by which a command or query finds its range. */
export function routingKey(request: Command | Query): Bytes {
  switch (request.type) {
    case 'kv':
      return kvRoutingKey(request.op.key);
    case 'range':
      return kvRoutingKey(request.op.key);
    case 'txn':
    case 'readTxn': {
      const { compare, success, failure } = request.txn;
      for (const part of [...compare, ...success, ...failure]) if ('key' in part) return kvRoutingKey(part.key);
      return Buffer.from([KV_SPACE]);
    }
    case 'leaseGrant':
    case 'leaseRevoke':
    case 'leaseExpire':
    case 'leaseKeepAlive':
    case 'leaseTimeToLive': {
      const key = Buffer.alloc(9, LEASE_SPACE);
      key.writeBigInt64BE(request.id, 1);
      return key;
    }
    case 'lockAwait':
    case 'grantEnd':
      return lockSpan(request.lock).start;
    case 'lock':
      return 'command' in request ? lockSpan(request.command.lock).start : lockQueryKey(request.query);
    case 'leases':
      return Buffer.from([LEASE_SPACE]);
    case 'compact':
    case 'noop':
    case 'status':
      return Buffer.from([KV_SPACE]);
  }
}

function lockQueryKey(query: Extract<Query, { type: 'lock' }>['query']): Bytes {
  if (query.type === 'show') return lockSpan(query.lock).start;
  if (query.type === 'list') return namespaceSpan(query.namespace, query.prefix).start;
  const first = query.checks[0];
  return first === undefined ? Buffer.from([LEASE_SPACE + 1]) : lockSpan(first.lock).start;
}
