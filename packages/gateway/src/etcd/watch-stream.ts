import { type Clock, compareBytes, type ServiceError, type Timer } from '@remora/base';
import type { KvEvent } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { Backend, WatchControl } from '../backend.ts';
import { callTimeoutMs, type StreamHandler, type StreamSink, TIMEOUT_LIMITS } from '../calls.ts';
import { etcdStatus } from './errors.ts';
import type { Headers } from './headers.ts';
import { toKeyRange } from './kv-requests.ts';
import { expectType } from './kv-responses.ts';
import type { EtcdLimits } from './limits.ts';
import { toMessages } from './watch-messages.ts';

/**
 * `Watch.Watch`: any number of watches on one stream, in etcd's manner (`server/etcdserver/api/v3rpc/watch.go`).
 *
 * W1. Creates are answered in the order in which they were asked: clients match answers by order. A watch that is
 *     ready before its turn is paused, and says nothing until then.
 * W2. After a watch's `canceled` message nothing is sent for its id; some clients fail on an unknown id.
 * W3. While the client does not read, every watch is paused at the backend, which catches it up from history later;
 *     here at most the message under way is kept.
 * W4. A watch that ends because of the cluster's state for the moment ends the stream, with a status upon which
 *     clients resume all its watches by themselves. One that can never go on is answered `canceled`.
 * W5. A progress message for the stream (watch id -1) names a revision that every watch has reached.
 */
const NO_WATCH = -1n;

interface Watch {
  /** Undefined for a create that was refused: it only waits for its turn to say so (W1). */
  readonly id: bigint | undefined;
  readonly request: pb.WatchCreateRequest;
  control: WatchControl | undefined;
  state: 'creating' | 'ready' | 'live' | 'over';
  paused: boolean;
  createdRevision: number;
  /** Why it ended before its turn came. */
  ended: { readonly reason: string; readonly compactRevision: number } | undefined;
  /** No event since the last tick of the progress timer. */
  idle: boolean;
  /** The timer asked for progress: pass the next empty answer on. */
  progressDue: boolean;
  /** Progress requests of the client that wait for this watch (W5). */
  owesProgress: boolean;
  reached: number;
}

export interface WatchServices {
  readonly backend: Backend;
  readonly headers: Headers;
  readonly clock: Clock;
}

export class WatchStream implements StreamHandler<pb.WatchRequest> {
  readonly #services: WatchServices;
  readonly #limits: EtcdLimits;
  readonly #sink: StreamSink<pb.WatchResponse>;
  readonly #resumeReading: () => void;
  readonly #watches = new Map<bigint, Watch>();
  /** W1. In the order of their requests. */
  readonly #creating: Watch[] = [];
  #nextId = 0n;
  #blocked = false;
  #notReading = false;
  #over = false;
  #progressAsked = false;
  #giveUpRevision: (() => void) | undefined;
  #progressTimer: Timer | undefined;

  constructor(
    services: WatchServices,
    limits: EtcdLimits,
    sink: StreamSink<pb.WatchResponse>,
    resumeReading: () => void,
  ) {
    this.#services = services;
    this.#limits = limits;
    this.#sink = sink;
    this.#resumeReading = resumeReading;
  }

  onRequest(request: pb.WatchRequest): boolean {
    if (this.#over) return true;
    const union = request.requestUnion;
    switch (union?.$case) {
      case 'createRequest':
        this.#create(union.value);
        break;
      case 'cancelRequest':
        this.#cancel(union.value.watchId);
        break;
      case 'progressRequest':
        this.#progress();
        break;
      case undefined:
        break;
    }
    this.#notReading = this.#creating.length >= this.#limits.watchRequestsPendingMax || this.#blocked;
    return !this.#notReading;
  }

  onDrain(): void {
    if (this.#over || !this.#blocked) return;
    this.#blocked = false;
    this.#announce();
    // Resuming one may block the stream again, which pauses those resumed before.
    for (const watch of this.#watches.values()) this.#fitPause(watch);
    this.#readOn();
  }

  /** etcd's clients half-close when they are done. */
  onHalfClose(): void {
    if (this.#over) return;
    this.onClose();
    this.#sink.end();
  }

  onClose(): void {
    this.#over = true;
    this.#progressTimer?.cancel();
    this.#giveUpRevision?.();
    for (const watch of [...this.#watches.values(), ...this.#creating]) {
      if (watch.state !== 'over') watch.control?.cancel();
      watch.state = 'over';
    }
    this.#watches.clear();
    this.#creating.length = 0;
  }

  #create(request: pb.WatchCreateRequest): void {
    const range = toWatchRange(request);
    const refusal = this.#refusalOf(request, range);
    const watch = newWatch(refusal === undefined ? this.#idFor(request.watchId) : undefined, request);
    this.#creating.push(watch);
    if (watch.id === undefined) {
      watch.ended = { reason: refusal ?? '', compactRevision: 0 };
      return this.#announce();
    }
    this.#watches.set(watch.id, watch);
    watch.control = this.#services.backend.watch(
      {
        ...range,
        startRevision: toStartRevision(request.startRevision),
        noPut: request.filters.includes(0),
        noDelete: request.filters.includes(1),
        prevKv: request.prevKv,
      },
      {
        onCreated: (revision) => this.#onCreated(watch, revision),
        onEvents: (events, revision) => this.#onEvents(watch, events, revision),
        onEnd: (error, compactRevision) => this.#onEnd(watch, error, compactRevision),
      },
    );
    // The backend may have answered before it returned the control, and that may have ended the stream.
    if (watch.state === 'over') watch.control.cancel();
    else this.#fitPause(watch);
    if (this.#over) return;
    if (request.progressNotify) this.#progressTimer ??= this.#startProgressTimer();
  }

  #refusalOf(request: pb.WatchCreateRequest, range: WatchRange): string | undefined {
    if (this.#watches.size >= this.#limits.watchesPerStreamMax) return 'etcdserver: too many watches on one stream';
    if (request.watchId !== 0n && this.#watches.has(request.watchId)) {
      return 'mvcc: duplicate watch ID provided on the WatchStream';
    }
    if (range.end !== undefined && range.end.length > 0 && compareBytes(range.key, range.end) >= 0) {
      return 'mvcc: watcher range is empty';
    }
    return undefined;
  }

  #idFor(asked: bigint): bigint {
    if (asked !== 0n) return asked;
    while (this.#watches.has(this.#nextId)) this.#nextId++;
    return this.#nextId++;
  }

  #onCreated(watch: Watch, revision: number): void {
    if (watch.state !== 'creating') return;
    watch.state = 'ready';
    watch.createdRevision = revision;
    // W5. One that begins in the past has its events still to come.
    const { startRevision } = watch.request;
    watch.reached = startRevision > 0n ? Math.min(toStartRevision(startRevision) - 1, revision) : revision;
    this.#announce();
    this.#fitPause(watch);
  }

  /** W1. Answers every create whose turn has come, then lets its events through. */
  #announce(): void {
    while (!this.#over && !this.#blocked) {
      const watch = this.#creating[0];
      if (watch === undefined || (watch.state === 'creating' && watch.ended === undefined)) break;
      this.#creating.shift();
      this.#announceOne(watch);
    }
    this.#readOn();
  }

  #announceOne(watch: Watch): void {
    const { ended } = watch;
    if (watch.id === undefined) {
      this.#write({ ...this.#message(NO_WATCH, 0), created: true, canceled: true, cancelReason: ended?.reason ?? '' });
      return;
    }
    const revision = Math.max(watch.createdRevision, ended?.compactRevision ?? 0);
    this.#write({ ...this.#message(watch.id, revision), created: true });
    if (ended !== undefined) this.#sendCanceled(watch, ended.reason, ended.compactRevision);
    else {
      watch.state = 'live';
      this.#fitPause(watch);
    }
  }

  /** W1, W3. Pausing a watch costs its backend a new start, so it is done only where events may not be sent now. */
  #fitPause(watch: Watch): void {
    const pause = watch.state === 'ready' || (watch.state === 'live' && this.#blocked);
    if (watch.control === undefined || watch.paused === pause || watch.state === 'creating') return;
    watch.paused = pause;
    if (pause) watch.control.pause();
    else watch.control.resume();
  }

  #onEvents(watch: Watch, events: readonly KvEvent[], revision: number): void {
    if (watch.id === undefined || watch.state !== 'live') return;
    watch.reached = Math.max(watch.reached, revision);
    if (events.length > 0) {
      watch.idle = false;
      const fragmentBytes = watch.request.fragment ? this.#limits.fragmentBytes : Number.POSITIVE_INFINITY;
      for (const message of toMessages(this.#message(watch.id, revision), events, fragmentBytes)) this.#write(message);
    } else if (watch.progressDue) {
      this.#write(this.#message(watch.id, revision));
    }
    watch.progressDue = false;
    watch.owesProgress = false;
    this.#settleProgress();
  }

  #onEnd(watch: Watch, error: ServiceError, compactRevision: number): void {
    if (watch.state === 'over' || watch.ended !== undefined) return;
    watch.control = undefined;
    if (compactRevision === 0 && error.retry !== 'no') {
      this.onClose();
      return this.#sink.end(error); // W4
    }
    const reason = etcdStatus(error).message;
    if (watch.state === 'live') return this.#sendCanceled(watch, reason, compactRevision);
    this.#endEarly(watch, reason, compactRevision);
  }

  /** The end of a watch that was not announced yet: it is told when its turn comes (W1). */
  #endEarly(watch: Watch, reason: string, compactRevision: number): void {
    if (watch.ended !== undefined) return;
    watch.control?.cancel();
    watch.control = undefined;
    watch.ended = { reason, compactRevision };
    this.#announce();
  }

  #cancel(id: bigint): void {
    const watch = this.#watches.get(id);
    if (watch === undefined) return;
    if (watch.state === 'live') this.#stop(watch);
    else this.#endEarly(watch, '', 0);
  }

  #stop(watch: Watch): void {
    watch.control?.cancel();
    this.#sendCanceled(watch, '', 0);
  }

  /** W2 */
  #sendCanceled(watch: Watch, cancelReason: string, compactRevision: number): void {
    if (watch.id === undefined) return;
    watch.state = 'over';
    this.#watches.delete(watch.id);
    this.#write({
      ...this.#message(watch.id, Math.max(watch.createdRevision, watch.reached, compactRevision)),
      canceled: true,
      cancelReason,
      compactRevision,
    });
    this.#settleProgress();
  }

  /** W5. Asks every watch how far it is; requests made meanwhile share the answer. */
  #progress(): void {
    if (this.#progressAsked) return;
    this.#progressAsked = true;
    const live = this.#live();
    if (live.length === 0) return this.#askRevision();
    for (const watch of live) watch.owesProgress = true;
    for (const watch of live) watch.control?.progress();
  }

  #live(): readonly Watch[] {
    return [...this.#watches.values()].filter((watch) => watch.state === 'live');
  }

  #settleProgress(): void {
    if (!this.#progressAsked || this.#giveUpRevision !== undefined || this.#over) return;
    let reached = Number.POSITIVE_INFINITY;
    for (const watch of this.#watches.values()) {
      if (watch.owesProgress) return;
      if (watch.state === 'live') reached = Math.min(reached, watch.reached);
    }
    if (reached === Number.POSITIVE_INFINITY) return this.#askRevision();
    this.#progressAsked = false;
    this.#write(this.#message(NO_WATCH, reached));
  }

  /** A stream without watches has reached whatever the store has; one that has some by then asks them (W5). */
  #askRevision(): void {
    this.#giveUpRevision = () => {};
    const giveUp = this.#services.backend.query(
      { type: 'status' },
      { timeoutMs: callTimeoutMs(undefined, TIMEOUT_LIMITS) },
      (error, reply) => {
        this.#giveUpRevision = undefined;
        this.#progressAsked = false;
        if (this.#over) return;
        if (reply === undefined) {
          this.onClose();
          return this.#sink.end(error);
        }
        if (this.#live().length > 0) return this.#progress();
        this.#write(this.#message(NO_WATCH, expectType(reply.result, 'status').status.revision));
      },
    );
    if (this.#giveUpRevision !== undefined) this.#giveUpRevision = giveUp;
  }

  #startProgressTimer(): Timer {
    return this.#services.clock.setTimer(this.#limits.progressIntervalMs, () => {
      for (const watch of this.#watches.values()) {
        if (watch.state !== 'live' || !watch.request.progressNotify) continue;
        watch.progressDue = watch.idle;
        watch.idle = true;
        if (watch.progressDue) watch.control?.progress();
      }
      this.#progressTimer = this.#startProgressTimer();
    });
  }

  #message(watchId: bigint, revision: number): pb.WatchResponse {
    return {
      header: this.#services.headers.make(revision, 0),
      watchId,
      created: false,
      canceled: false,
      compactRevision: 0,
      cancelReason: '',
      fragment: false,
      events: [],
    };
  }

  /** W3 */
  #write(message: pb.WatchResponse): void {
    if (this.#sink.write(message) || this.#blocked) return;
    this.#blocked = true;
    for (const watch of this.#watches.values()) this.#fitPause(watch);
  }

  #readOn(): void {
    if (this.#over || !this.#notReading || this.#blocked) return;
    if (this.#creating.length >= this.#limits.watchRequestsPendingMax) return;
    this.#notReading = false;
    this.#resumeReading();
  }
}

function newWatch(id: bigint | undefined, request: pb.WatchCreateRequest): Watch {
  return {
    id,
    request,
    control: undefined,
    state: 'creating',
    paused: false,
    createdRevision: 0,
    ended: undefined,
    idle: true,
    progressDue: false,
    owesProgress: false,
    reached: 0,
  };
}

type WatchRange = ReturnType<typeof toKeyRange>;

const FIRST_KEY = Buffer.from([0]);

/** No key means the smallest one. */
function toWatchRange(request: pb.WatchCreateRequest): WatchRange {
  return toKeyRange(request.key.length > 0 ? request : { key: FIRST_KEY, rangeEnd: request.rangeEnd });
}

/** Below 0: from now on. A watch may start in the future. */
function toStartRevision(revision: bigint): number {
  if (revision <= 0n) return 0;
  return revision > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(revision);
}
