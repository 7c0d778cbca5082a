/**
 * Measures requests to ranges, and logs slow ones.
 *
 * RM1. A request that waits for something to happen (a lock, the end of a grant) is not measured: its time says nothing
 *      about the cluster. `remora_lock_wait_seconds` has the waits for locks.
 * RM2. Usual requests are sampled: one in `SAMPLED` is measured, and counts so often. A request is not usual if it was
 *      sent again, waited for a leader, or took unusually long (slow-answers.ts): each of these is measured. So the
 *      histogram is right, no slow request is missed, and usual ones cost nothing: the clock is read for few of them.
 * RM3. Slow requests come in crowds, so at most one line of each kind is logged in a minute (`RareLog`).
 */
import { type Clock, type Histogram, type Logger, type Metrics, RareLog } from '@remora/base';
import type { Command, Query, RangeRequest } from '@remora/protocol';

type Body = RangeRequest['body'] | undefined;

export interface RequestMeterDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A request that takes this long is logged; 0: none is. */
  readonly slowMs: number;
}

/** RM2. A power of two. */
const SAMPLED = 8;

/** Where the time of a request went. */
export interface RequestTimes {
  readonly tookMs: number;
  /** The tag of the request id (`requestTag`), also in the leader's line about the command. Empty for queries. */
  readonly request: string;
  /** The range and node that it was sent to last; 0: it was not sent. */
  readonly rangeId: number;
  readonly node: number;
  readonly attempts: number;
  /** The time in which no leader of the range was known. */
  readonly searchedMs: number;
  /** The time since the last attempt was sent. */
  readonly lastAttemptMs: number;
  readonly code: string;
}

export class RequestMeter {
  readonly slowMs: number;
  readonly #seconds: Histogram;
  readonly #kinds = new Map<string, Histogram>();
  readonly #log: RareLog;
  #usual = 0;

  constructor({ metrics, clock, logger, slowMs }: RequestMeterDeps) {
    this.slowMs = slowMs === 0 ? Number.POSITIVE_INFINITY : slowMs;
    this.#log = new RareLog(clock, logger);
    this.#seconds = metrics.histogram({
      name: 'remora_request_seconds',
      help: "Time of requests to ranges, from this gateway's first attempt to the answer, by kind. Usual ones are sampled.",
      labels: ['kind'],
    });
  }

  /** For a usual request that has ended: how often it counts; 0: it is not measured. (RM2) */
  weight(): number {
    return (this.#usual++ & (SAMPLED - 1)) === 0 ? SAMPLED : 0;
  }

  ended(body: Body, tookMs: number, weight: number): void {
    const kind = kindOf(body);
    let histogram = this.#kinds.get(kind);
    if (histogram === undefined) {
      histogram = this.#seconds.labels(kind);
      this.#kinds.set(kind, histogram);
    }
    histogram.observe(tookMs / 1_000, weight);
  }

  slow(body: Body, times: RequestTimes): void {
    const kind = kindOf(body);
    const { tookMs, searchedMs, lastAttemptMs, ...rest } = times;
    const rounded = {
      tookMs: Math.round(tookMs),
      searchedMs: Math.round(searchedMs),
      lastAttemptMs: Math.round(lastAttemptMs),
    };
    this.#log.warn(kind, { kind, ...rounded, ...rest }, 'a request was slow');
  }
}

type CommandOf<Type extends Command['type']> = Extract<Command, { readonly type: Type }>;
type RequestKind =
  | 'unsent'
  | 'recall'
  | Query['type']
  | CommandOf<'kv'>['op']['type']
  | CommandOf<'lock'>['command']['type']
  | Exclude<Command['type'], 'kv' | 'lock'>;

/** From a closed set: it is the value of a label. */
export function kindOf(body: Body): RequestKind {
  if (body === undefined) return 'unsent';
  switch (body.kind) {
    case 'recall':
      return 'recall';
    case 'query':
      return body.query.type;
    default: {
      const { command } = body;
      if (command.type === 'kv') return command.op.type;
      return command.type === 'lock' ? command.command.type : command.type;
    }
  }
}

/** What a request is about, for sums over kinds. */
export type RequestSort = 'read' | 'write' | 'lock' | 'other';

const SORTS: Readonly<Record<RequestKind, RequestSort>> = {
  ...{ range: 'read', readTxn: 'read', scan: 'read', history: 'read' },
  ...{ put: 'write', delete: 'write', txn: 'write', txnPrepare: 'write', txnDecide: 'write', txnResolve: 'write' },
  ...{ acquire: 'lock', release: 'lock', cancel: 'lock', forceRelease: 'lock', downgrade: 'lock', setCapacity: 'lock' },
  ...{ setData: 'lock', setDepth: 'lock', forget: 'lock', revoke: 'lock', endDelay: 'lock' },
  ...{ lock: 'lock', lockAwait: 'lock', grantEnd: 'lock' },
  ...{ leaseGrant: 'lock', leaseChange: 'lock', leaseRevoke: 'lock', leaseKeepAlive: 'lock', leaseTimeToLive: 'lock' },
  ...{
    session: 'lock',
    sessions: 'lock',
    leases: 'lock',
    leaseKeys: 'lock',
    leaseExpire: 'lock',
    leaseEnd: 'lock',
    leaseCheckpoint: 'lock',
  },
  ...{ leaseRegister: 'lock', leaseRefer: 'lock', leaseSettle: 'lock' },
  ...{ unsent: 'other', recall: 'other', status: 'other', closedRevision: 'other', txnStatus: 'other' },
  ...{ compact: 'other', raiseRevision: 'other', txnForget: 'other', recount: 'other', split: 'other', seal: 'other' },
  ...{ merge: 'other', refuseMerge: 'other', unseal: 'other', noop: 'other' },
};

/** The sort of a kind, as `remora_request_seconds` names it. */
export function sortOfKind(kind: string): RequestSort {
  return (SORTS as Readonly<Record<string, RequestSort | undefined>>)[kind] ?? 'other';
}
