import { type Bytes, ServiceError } from '@remora/base';
import { type PipeWatchMessage, type PipeWatchRequest, pipeWatch, type Query, rangeOp } from '@remora/protocol';
import type { Requester } from '../transport/requester.ts';
import { Subscription } from '../transport/subscription.ts';

/** A key, or the keys up to `end`. */
export interface WatchedKeys {
  readonly key: Bytes;
  readonly end?: Bytes;
}

export interface KeyChangesOptions<Event> {
  readonly startRevision?: number | undefined;
  readonly noPut?: boolean | undefined;
  readonly noDelete?: boolean | undefined;
  readonly prevKv?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** What a message means to the consumer. */
  readonly toEvents: (message: PipeWatchMessage) => readonly Event[];
}

/** The changes of keys, from a stream that is resumed when it breaks: the rules are those of `KvWatch` (watch.ts). */
export class KeyChanges<Event> extends Subscription<Event, PipeWatchRequest, PipeWatchMessage> {
  readonly #toEvents: (message: PipeWatchMessage) => readonly Event[];
  readonly #asked: Omit<Extract<PipeWatchRequest, { readonly kind: 'create' }>, 'startRevision'>;
  #nextRevision: number;
  #begins: (revision: number) => void = () => {};
  #endsBefore: (error: ServiceError) => void = () => {};
  readonly #began = new Promise<number>((resolve, reject) => {
    this.#begins = resolve;
    this.#endsBefore = reject;
  });

  constructor(requester: Requester, range: WatchedKeys, options: KeyChangesOptions<Event>) {
    const { startRevision = 0, noPut = false, noDelete = false, prevKv = false, signal, toEvents } = options;
    super(requester, pipeWatch);
    this.#toEvents = toEvents;
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

  protected eventsOf(message: PipeWatchMessage): readonly Event[] {
    // W1. Everything before the beginning is complete, unless the watch was asked to begin earlier. A watch that begins
    //     at a future revision also receives the progress of its keys, from which it must not resume.
    if (message.kind === 'events' || this.#nextRevision === 0) {
      this.#nextRevision = Math.max(this.#nextRevision, message.revision + 1);
    }
    if (message.kind === 'created') this.#begins(this.#nextRevision);
    return this.#toEvents(message);
  }
}
