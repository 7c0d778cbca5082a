import { type Bytes, ServiceError } from '@remora/base';
import {
  type KvEvent,
  type PipeWatchMessage,
  type PipeWatchRequest,
  pipeWatch,
  type Query,
  rangeOp,
} from '@remora/protocol';
import { flag, revision, signal } from '../options/option-kinds.ts';
import { optionSet } from '../options/options.ts';
import type { Requester } from '../transport/requester.ts';
import { Subscription } from '../transport/subscription.ts';
import { type KvPair, toPair } from './keys.ts';

export interface WatchOptions {
  /** The first revision to report. Default: changes from now on. */
  readonly startRevision?: number | undefined;
  /** Leave out puts. Default false. */
  readonly noPut?: boolean | undefined;
  /** Leave out deletes. Default false. */
  readonly noDelete?: boolean | undefined;
  /** Deliver with each change the pair before it, unless that revision was compacted. Default false. */
  readonly prevKv?: boolean | undefined;
  /** Ends the watch when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

export const WATCH_OPTIONS = optionSet<WatchOptions>('watch', {
  ...{ startRevision: revision, noPut: flag, noDelete: flag, prevKv: flag, signal },
});

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  /** For a delete only its key and `modRevision` are meaningful. */
  readonly kv: KvPair;
  /** The pair before the change, if `prevKv` asked for it and it is known. */
  readonly prev: KvPair | undefined;
}

/**
 * One watch, as an async iterator.
 *
 * W1. Events arrive in the order of their revisions, each once. After a lost connection the watch resumes behind the
 *     last revision that it has received completely.
 * W2. The watch ends with COMPACTED when the revision to resume from was compacted.
 * W3. Once the watch has begun, it reports every change that is requested afterwards.
 */
export class KvWatch extends Subscription<WatchEvent, PipeWatchRequest, PipeWatchMessage> {
  readonly #asked: Omit<Extract<PipeWatchRequest, { readonly kind: 'create' }>, 'startRevision'>;
  #nextRevision: number;
  #begins: (revision: number) => void = () => {};
  #endsBefore: (error: ServiceError) => void = () => {};
  readonly #began = new Promise<number>((resolve, reject) => {
    this.#begins = resolve;
    this.#endsBefore = reject;
  });

  constructor(requester: Requester, range: { readonly key: Bytes; readonly end?: Bytes }, options: WatchOptions) {
    const { startRevision = 0, noPut = false, noDelete = false, prevKv = false, signal } = options;
    super(requester, pipeWatch);
    this.#began.catch(() => {}); // Nobody may be waiting for it.
    this.#asked = { kind: 'create', ...range, noPut, noDelete, prevKv };
    this.#nextRevision = startRevision;
    this.begin(signal);
  }

  /** The revision from which the watch would resume now; 0 until it has begun. */
  get nextRevision(): number {
    return this.#nextRevision;
  }

  /**
   * Resolves once the watch has begun (W3), to the revision of its first possible event. Without `startRevision`, a
   * change that is made before this resolves may or may not be reported.
   *
   * @throws ServiceError the error with which the watch ended before it began; CANCELED when it was closed.
   */
  began(): Promise<number> {
    return this.#began;
  }

  protected override over(error: ServiceError | undefined): void {
    this.#endsBefore(error ?? new ServiceError('CANCELED', 'the watch was closed before it began'));
  }

  protected request(): PipeWatchRequest {
    return { ...this.#asked, startRevision: this.#nextRevision };
  }

  /** Reads the first key: reading several ranges may need the master, which a running watch does not need. */
  protected probe(): Query {
    const { key } = this.#asked;
    const op = rangeOp({ key }, { limit: 1, keysOnly: true });
    return { type: 'range', op, serializable: false };
  }

  protected eventsOf(message: PipeWatchMessage): readonly WatchEvent[] {
    // W1. Everything before the beginning is complete, unless the watch was asked to begin earlier. A watch that begins
    //     at a future revision also receives the progress of its keys, from which it must not resume.
    if (message.kind === 'events' || this.#nextRevision === 0) {
      this.#nextRevision = Math.max(this.#nextRevision, message.revision + 1);
    }
    if (message.kind === 'created') this.#begins(this.#nextRevision);
    return message.kind === 'events' ? message.events.map(toWatchEvent) : [];
  }
}

function toWatchEvent(event: KvEvent): WatchEvent {
  return { type: event.type, kv: toPair(event.kv), prev: event.prev === undefined ? undefined : toPair(event.prev) };
}
