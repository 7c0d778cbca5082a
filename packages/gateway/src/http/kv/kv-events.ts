import { type Clock, jsonBytes, ServiceError, type Timer } from '@remora/base';
import type { KeyRange, KvEvent } from '@remora/protocol';
import type { Asked, Backend, WatchControl, WatchListener } from '../../backend.ts';
import { TIMEOUT_LIMITS } from '../../calls.ts';
import type { EventSource, EventStream } from '../api-types.ts';
import { invalid } from '../fields.ts';
import type { KvStreamChange, KvStreamChanges, KvStreamLive } from '../json/kv.ts';
import { errorAnswer } from '../statuses.ts';
import { onlyThese, type Target, wholeNumber } from '../targets.ts';
import { keyJson, keysOf, keyValueJson } from './kv-json.ts';
import { flagOf, requireKey } from './kv-reads.ts';

export interface KvWatchTerms {
  readonly span: KeyRange;
  /** Changes after this revision; undefined: from now on. */
  readonly since: number | undefined;
  readonly withValues: boolean;
}

/** A stream that is ready to be sent. `cancel` ends it if it is not. */
export interface KvEvents {
  readonly events: EventStream;
  readonly cancel: () => void;
}

export function readKvWatch({ query }: Target, lastEventId: string | undefined): KvWatchTerms {
  onlyThese(query, ['key', 'prefix', 'since', 'values']);
  const key = query.get('key');
  const prefix = query.get('prefix');
  if (key !== undefined && prefix !== undefined) throw invalid('key or prefix: send one of them');
  return {
    span: key === undefined ? keysOf(prefix ?? Buffer.alloc(0)) : { key: requireKey(key) },
    since: sinceOf(query, lastEventId),
    withValues: flagOf(query, 'values', true),
  };
}

/** A client that reconnects sends its first request again, and the header. */
function sinceOf(query: Target['query'], lastEventId: string | undefined): number | undefined {
  if (lastEventId === undefined || lastEventId === '') {
    return query.has('since') ? wholeNumber(query, 'since', 0) : undefined;
  }
  if (/^\d{1,15}$/.test(lastEventId)) return Number(lastEventId);
  throw invalid('Last-Event-ID must be the id of an event of this stream: a revision');
}

/**
 * Changes of keys as server-sent events.
 *
 * KE1. The id of an event is its revision, and all changes of one revision are one event. So a client that names the
 *      last id gets all later changes, each once.
 * KE2. The answer waits until the watch has begun: a refusal is an answer with its own status, after which an
 *      EventSource does not reconnect.
 * KE3. While the client is behind, the watch is paused, and catches up from history afterwards.
 */
export function kvEvents(
  { backend, clock }: { readonly backend: Backend; readonly clock: Clock },
  { span, since, withValues }: KvWatchTerms,
  { principal, trace }: Asked,
  signal: AbortSignal,
): Promise<KvEvents> {
  return new Promise((resolve, reject) => {
    const options = {
      startRevision: since === undefined ? 0 : since + 1,
      noPut: false,
      noDelete: false,
      prevKv: false,
    };
    const feed = new Feed({ since, withValues, clock, signal }, resolve, reject);
    feed.start(backend.watch({ ...span, ...options, principal, trace }, feed));
  });
}

interface FeedTerms {
  readonly since: number | undefined;
  readonly withValues: boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

type Sink = Parameters<EventStream>[0];

class Feed implements WatchListener {
  readonly #terms: FeedTerms;
  readonly #ready: (events: KvEvents) => void;
  readonly #refused: (error: unknown) => void;
  readonly #late: Timer;
  readonly #onAbort = (): void => this.#refuse(this.#terms.signal.reason);
  #control: WatchControl | undefined;
  #state: 'beginning' | 'ready' | 'open' | 'over' = 'beginning';
  #sink: Sink | undefined;
  #isBehind = false;
  /** What came before the stream was opened: the watch is paused then, so hardly anything. */
  readonly #early: (() => void)[] = [];

  constructor(terms: FeedTerms, ready: (events: KvEvents) => void, refused: (error: unknown) => void) {
    this.#terms = terms;
    this.#ready = ready;
    this.#refused = refused;
    this.#late = terms.clock.setTimer(TIMEOUT_LIMITS.defaultMs, () => this.#refuse(tooLate()));
    terms.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** The watch may have answered before it returned its control. */
  start(control: WatchControl): void {
    this.#control = control;
    if (this.#state === 'over') control.cancel();
    else if (this.#state === 'ready') control.pause();
    else if (this.#terms.signal.aborted) this.#onAbort();
  }

  onCreated(revision: number): void {
    if (this.#state !== 'beginning') return;
    this.#state = 'ready';
    this.#begun();
    this.#control?.pause();
    this.#ready({
      events: (sink) => this.#open(sink, this.#terms.since ?? revision),
      cancel: () => this.#cancel(),
    });
  }

  onEvents(events: readonly KvEvent[], revision: number): void {
    if (this.#state === 'ready') this.#early.push(() => this.#send(events, revision));
    else if (this.#state === 'open') this.#send(events, revision);
  }

  onProgress(): void {}

  onEnd(error: ServiceError, compactRevision: number): void {
    const shown = compactRevision > 0 ? { details: { compactRevision } } : {};
    const told = error.code === 'COMPACTED' ? new ServiceError('COMPACTED', compactedMessage(), shown) : error;
    if (this.#state === 'beginning') return this.#refuse(told);
    const end = (): void => this.#sink?.end('error', errorAnswer(told).body);
    if (this.#state === 'ready') this.#early.push(end);
    else if (this.#state === 'open') end();
  }

  #open(sink: Sink, from: number): EventSource {
    this.#sink = sink;
    this.#state = 'open';
    this.#write('live', { revision: from }, from);
    for (const deliver of this.#early.splice(0)) deliver();
    if (!this.#isBehind) this.#control?.resume();
    return { onDrain: () => this.#drained(), onClose: () => this.#cancel() };
  }

  /** KE1. */
  #send(events: readonly KvEvent[], revision: number): void {
    let sent = 0;
    for (let at = 0; at < events.length; ) {
      const changed = events[at]?.kv.modRevision ?? 0;
      const rest = events.findIndex(({ kv }, i) => i > at && kv.modRevision !== changed);
      const group = events.slice(at, rest < 0 ? events.length : rest);
      this.#write('events', { revision: changed, events: group.map((event) => this.#json(event)) }, changed);
      sent = changed;
      at += group.length;
    }
    if (revision > sent) this.#write('progress', { revision }, revision);
  }

  #json({ type, kv }: KvEvent): KvStreamChange {
    if (type === 'delete') return { type, key: jsonBytes(kv.key), modRevision: kv.modRevision };
    return { type, ...(this.#terms.withValues ? keyValueJson(kv) : keyJson(kv)) };
  }

  /** KE3. */
  #write(event: string, data: KvStreamLive | KvStreamChanges, id: number): void {
    const unread = this.#sink?.write(event, data, id) ?? 0;
    if (unread === 0 || this.#isBehind || this.#state !== 'open') return;
    this.#isBehind = true;
    this.#control?.pause();
  }

  #drained(): void {
    if (!this.#isBehind || this.#state !== 'open') return;
    this.#isBehind = false;
    this.#control?.resume();
  }

  #refuse(error: unknown): void {
    if (this.#state !== 'beginning') return;
    this.#cancel();
    this.#refused(error);
  }

  #cancel(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#begun();
    this.#control?.cancel();
  }

  /** The signal is the call's: once the stream is ready, it ends by `cancel`. */
  #begun(): void {
    this.#late.cancel();
    this.#terms.signal.removeEventListener('abort', this.#onAbort);
  }
}

function compactedMessage(): string {
  return 'changes after that revision were compacted: read the keys, and watch from the revision of that answer on';
}

function tooLate(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'no range has begun the watch in time; repeat the call, also at another node');
}
