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
  /** First revision to report; by default what happens from now on. */
  readonly startRevision?: number | undefined;
  readonly noPut?: boolean | undefined;
  readonly noDelete?: boolean | undefined;
  /** Deliver the pair before each change, where it is still known. */
  readonly prevKv?: boolean | undefined;
  /** Ends the watch. */
  readonly signal?: AbortSignal | undefined;
}

export const WATCH_OPTIONS = optionSet<WatchOptions>('watch', {
  ...{ startRevision: revision, noPut: flag, noDelete: flag, prevKv: flag, signal },
});

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  /** For a delete, only its key and `modRevision` mean something. */
  readonly kv: KvPair;
  readonly prev: KvPair | undefined;
}

/**
 * One watch, as an async iterator.
 *
 * W1. Events come in order of revision, each once: after a break the watch resumes behind the last revision that is
 *     known to be complete.
 * W2. When the revision to go on from is gone, it ends with COMPACTED.
 * W3. Once it has begun, it tells every change that is asked for from then on.
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
    this.#began.catch(() => {}); // Whether anybody waits for it or not.
    this.#asked = { kind: 'create', ...range, noPut, noDelete, prevKv };
    this.#nextRevision = startRevision;
    this.begin(signal);
  }

  /** The revision from which the watch would resume now; 0 until the server has said where it began. */
  get nextRevision(): number {
    return this.#nextRevision;
  }

  /**
   * The revision of its first possible event, once the server has said that it has begun (W3). Who changes a key without
   * waiting for that, in a watch without `startRevision`, may be told of it or not.
   *
   * @throws ServiceError as the watch does that ends before; CANCELED when it was closed.
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

  /** Its first key: to read more than one may take the master, which a watch that goes on does not need. */
  protected probe(): Query {
    const { key } = this.#asked;
    const op = rangeOp({ key }, { limit: 1, keysOnly: true });
    return { type: 'range', op, serializable: false };
  }

  protected eventsOf(message: PipeWatchMessage): readonly WatchEvent[] {
    // W1. Where it began is complete before that, unless it was asked to begin earlier. A watch that was asked to begin at
    // a revision that is still to come is told meanwhile how far its keys are: that is no place to go back to.
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
