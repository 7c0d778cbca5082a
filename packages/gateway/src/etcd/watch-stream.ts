import { type Clock, compareBytes, ServiceError, type Timer } from '@remora/base';
import type { KvEvent } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { Backend, WatchControl } from '../backend.ts';
import type { CallerInfo, StreamHandler, StreamSink } from '../calls.ts';
import { etcdStatus } from './errors.ts';
import type { Headers } from './headers.ts';
import { toKeyRange } from './kv-requests.ts';
import type { EtcdLimits } from './limits.ts';
import { accessRefusal, toMessages } from './watch-messages.ts';
import { ask, type ProgressWatch, StreamProgress } from './watch-progress.ts';

/**
 * `Watch.Watch`: any number of watches on one stream, as in etcd (`server/etcdserver/api/v3rpc/watch.go`).
 *
 * W1. Creates are answered in the order of their requests, as clients match answers by order. A watch that is ready
 *     before its turn is paused until then.
 * W2. After a watch's `canceled` message nothing is sent for its id; some clients fail on an unknown id.
 * W3. While the client is behind, every watch is paused at the backend, and catches up from history later. The
 *     transport keeps what was sent before, and decides when a client is behind.
 * W4. A watch that ends because of a temporary state of the cluster ends the stream, with a status after which clients
 *     resume all of its watches. A watch that can never go on is answered `canceled`.
 * W5. After a message with a revision as progress, for the stream (watch id -1, `StreamProgress`) or for one watch
 *     (`progress_notify`), no event at or below that revision follows. All fragments of a message are written before
 *     any other message.
 * W6. If clients resume from the header of a message, the header has exactly the revision to resume from: for events
 *     and progress, the revision up to which everything was sent; for the `created` of a watch from the next change on,
 *     the revision behind which it starts. Other headers have the highest revision that the stream has sent so far.
 * W7. A caller who may not watch gets the one message of etcd, which gives the watch no id. etcd's clients tell from
 *     its text whether to log in again (etcd `client/v3/watch.go`, `shouldRetryWatch`).
 */
const NO_WATCH = -1n;

interface Watch extends ProgressWatch {
  /** Undefined for a create that was refused: it only waits for its turn to be answered (W1). */
  readonly id: bigint | undefined;
  readonly request: pb.WatchCreateRequest;
  control: WatchControl | undefined;
  state: 'creating' | 'ready' | 'live' | 'over';
  paused: boolean;
  createdRevision: number;
  /** Why it ended before its turn came. */
  ended: { readonly reason: string; readonly compactRevision: number; readonly isRefused: boolean } | undefined;
  /** Whether it had no event since the last tick of the progress timer. */
  idle: boolean;
  /** Whether the timer has asked for progress: then the next answer is sent to the client. */
  progressDue: boolean;
}

export interface WatchServices {
  readonly backend: Backend;
  readonly headers: Headers;
  readonly clock: Clock;
  readonly caller: Pick<CallerInfo, 'principal' | 'refusal'>;
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
  /** W6. The highest revision of any header. */
  #newest = 0;
  #blocked = false;
  #notReading = false;
  #over = false;
  readonly #progress = new StreamProgress(
    () => this.#reporting(),
    (revision) => this.#write(this.#message(NO_WATCH, revision)),
  );
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
        this.#progress.request();
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
    // Resuming a watch may block the stream again, which pauses the watches resumed before.
    for (const watch of this.#watches.values()) this.#fitPause(watch);
    this.#readOn();
  }

  /** etcd's clients half-close when they need no further events. */
  onHalfClose(): void {
    if (this.#over) return;
    this.onClose();
    this.#sink.end();
  }

  onClose(): void {
    this.#over = true;
    this.#progressTimer?.cancel();
    this.#progress.stop();
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
      watch.ended = { reason: refusal ?? '', compactRevision: 0, isRefused: true };
      return this.#announce();
    }
    this.#watches.set(watch.id, watch);
    watch.control = this.#services.backend.watch(
      {
        ...range,
        startRevision: watch.startRevision,
        noPut: request.filters.includes(0),
        noDelete: request.filters.includes(1),
        prevKv: request.prevKv,
        principal: this.#services.caller.principal,
      },
      {
        onCreated: (revision) => this.#onCreated(watch, revision),
        onEvents: (events, revision) => this.#onEvents(watch, events, revision),
        onProgress: (revision) => this.#onProgress(watch, revision),
        onEnd: (error, compactRevision) => this.#onEnd(watch, error, compactRevision),
      },
    );
    // The backend may have answered before it returned the control, and that may have ended the stream.
    if (watch.state === 'over') watch.control.cancel();
    else this.#fitPause(watch);
    if (this.#over) return;
    if (watch.ended === undefined) this.#progress.joined(watch);
    if (request.progressNotify) this.#progressTimer ??= this.#startProgressTimer();
  }

  #refusalOf(request: pb.WatchCreateRequest, range: WatchRange): string | undefined {
    const { refusal } = this.#services.caller;
    if (refusal !== undefined) return accessRefusal(refusal) ?? refusal.message; // W7
    if (this.#watches.size >= this.#limits.watchesPerStreamMax) return 'etcdserver: too many watches on one stream';
    if (request.watchId !== 0n && this.#watches.has(request.watchId)) {
      return 'mvcc: duplicate watch ID provided on the WatchStream';
    }
    if (range.end !== undefined && range.end.length > 0 && compareBytes(range.key, range.end) >= 0) {
      return 'mvcc: watcher range is empty';
    }
    if (request.startRevision < 0n) return COMPACTED;
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
    // W5. A watch that starts in the past has not sent its events yet.
    const { startRevision } = watch;
    watch.reached = startRevision > 0 ? Math.min(startRevision - 1, revision) : revision;
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
    if (watch.id === undefined || ended?.isRefused === true) {
      if (watch.id !== undefined) this.#watches.delete(watch.id);
      watch.state = 'over';
      const cancelReason = ended?.reason ?? '';
      this.#write({ ...this.#message(NO_WATCH, this.#newest), created: true, canceled: true, cancelReason });
      return;
    }
    const fromNow = watch.startRevision === 0 && ended === undefined;
    const revision = Math.max(watch.createdRevision, ended?.compactRevision ?? 0, fromNow ? 0 : this.#newest);
    this.#write({ ...this.#message(watch.id, revision), created: true });
    if (ended !== undefined) this.#sendCanceled(watch, ended.reason, ended.compactRevision);
    else {
      watch.state = 'live';
      this.#fitPause(watch);
    }
  }

  /**
   * W1, W3. A paused watch has to start again at its backend, so watches are paused only while events must not be sent.
   */
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
    if (events.length === 0) return;
    watch.idle = false;
    watch.progressDue = false;
    const fragmentBytes = watch.request.fragment ? this.#limits.fragmentBytes : Number.POSITIVE_INFINITY;
    for (const message of toMessages(this.#message(watch.id, revision), events, fragmentBytes)) this.#write(message);
  }

  #onProgress(watch: Watch, revision: number): void {
    if (watch.id === undefined || watch.state !== 'live') return;
    watch.reached = Math.max(watch.reached, revision);
    // A client would resume a watch that starts in the future too early (P4 of StreamProgress).
    if (watch.progressDue && watch.startRevision <= watch.reached + 1) {
      this.#write(this.#message(watch.id, watch.reached));
    }
    watch.progressDue = false;
    this.#progress.answered(watch);
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
    const refusal = accessRefusal(error);
    if (refusal === undefined || watch.state !== 'creating') return this.#endEarly(watch, reason, compactRevision);
    this.#endEarly(watch, refusal, 0, true); // W7
  }

  /** A watch that was not announced yet has ended: its create is answered in its turn (W1). */
  #endEarly(watch: Watch, reason: string, compactRevision: number, isRefused = false): void {
    if (watch.ended !== undefined) return;
    watch.control?.cancel();
    watch.control = undefined;
    watch.ended = { reason, compactRevision, isRefused };
    this.#announce();
    this.#progress.sendDue();
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
      ...this.#message(watch.id, Math.max(this.#newest, watch.reached, compactRevision)),
      canceled: true,
      cancelReason,
      compactRevision,
    });
    this.#progress.sendDue();
  }

  /** Watches that may still report events, whether they are announced or not. */
  *#reporting(): Iterable<Watch> {
    for (const watch of this.#watches.values()) if (watch.ended === undefined) yield watch;
  }

  #startProgressTimer(): Timer {
    return this.#services.clock.setTimer(this.#limits.progressIntervalMs, () => {
      for (const watch of this.#watches.values()) {
        if (watch.state !== 'live' || !watch.request.progressNotify) continue;
        watch.progressDue = watch.idle;
        watch.idle = true;
        if (watch.progressDue) ask(watch);
      }
      this.#progressTimer = this.#startProgressTimer();
    });
  }

  #message(watchId: bigint, revision: number): pb.WatchResponse {
    this.#newest = Math.max(this.#newest, revision);
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
    startRevision: toStartRevision(request.startRevision),
    control: undefined,
    state: 'creating',
    paused: false,
    createdRevision: 0,
    ended: undefined,
    idle: true,
    progressDue: false,
    asked: false,
    askAgain: false,
    owes: false,
    reached: 0,
  };
}

type WatchRange = ReturnType<typeof toKeyRange>;

const COMPACTED = etcdStatus(new ServiceError('COMPACTED', 'a revision cannot be negative')).message;
const FIRST_KEY = Buffer.from([0]);

/** No key means the smallest one. */
function toWatchRange(request: pb.WatchCreateRequest): WatchRange {
  return toKeyRange(request.key.length > 0 ? request : { key: FIRST_KEY, rangeEnd: request.rangeEnd });
}

/** A watch may start in the future. Negative revisions are refused as compacted before (etcd 3.6, `recvLoop`). */
function toStartRevision(revision: bigint): number {
  return revision > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(revision);
}
