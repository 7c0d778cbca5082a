/**
 * Checks whether the messages of etcd watch streams, as their clients receive them, report progress correctly.
 *
 * Promises:
 * S1. Creates are answered in the order of their requests.
 * S2. After a progress message of the stream (watch id -1) at revision R, no watch of the stream reports an event at or
 *     below R, and all its changes up to R have come. This holds for watches that were announced before the message,
 *     and for those that were requested before the progress request that it answers. A watch that starts "from now on"
 *     begins at R or above, whenever it is announced. The n-th message answers the n-th request, or a later one.
 * S3. The same holds for a progress message of one watch, and for the header of a message with events: clients resume
 *     after that revision.
 * S4. Progress of a stream never decreases, and an answer's revision is at least every revision that was acknowledged
 *     before its request.
 *
 * `WatchCheck` judges each watch (its W1 to W4). This check translates messages for it.
 */
import { type Check, type Finding, NOTHING, violation } from '../check.ts';
import { type Change, WatchCheck, type WatchCheckOptions, type WatchSpan } from './watch.ts';

export interface StreamMessage {
  readonly watchId: number;
  /** The revision in the header. */
  readonly revision: number;
  readonly created: boolean;
  readonly canceled: boolean;
  /** More of the same events follow in the next message of the watch. */
  readonly fragment: boolean;
  readonly events: readonly Change[];
}

export type WatchStreamEvent =
  | ({ readonly type: 'changed' } & Change)
  /** `from`: 0 for a watch from now on. */
  | ({ readonly type: 'create'; readonly stream: string; readonly from: number } & WatchSpan)
  /** `acknowledged`: the highest revision of a write that was answered before this request was sent. */
  | { readonly type: 'ask'; readonly stream: string; readonly acknowledged: number }
  | { readonly type: 'message'; readonly stream: string; readonly message: StreamMessage };

interface Watching {
  readonly name: string;
  readonly span: WatchSpan;
  readonly from: number;
  /** It is the n-th one of its stream. */
  readonly place: number;
  opened: boolean;
}

/** A progress request. */
interface Asked {
  readonly acknowledged: number;
  /** The number of watches that were requested before. */
  readonly creates: number;
}

interface Stream {
  readonly creating: Watching[];
  readonly watching: Map<number, Watching>;
  /** The requests that are not known to be answered, in order. */
  readonly asked: Asked[];
  /** The revision of the last progress message. */
  progress: number;
  creates: number;
}

const STREAM = -1;

export class WatchStreamCheck implements Check<WatchStreamEvent> {
  readonly name = 'watch stream';
  readonly #watches: WatchCheck;
  readonly #streams = new Map<string, Stream>();

  constructor(options: WatchCheckOptions = {}) {
    this.#watches = new WatchCheck(options);
  }

  observe(event: WatchStreamEvent): readonly Finding[] {
    switch (event.type) {
      case 'changed':
        return this.#watches.observe(event);
      case 'create':
        return this.#create(event);
      case 'ask': {
        const { asked, creates } = this.#stream(event.stream);
        asked.push({ acknowledged: event.acknowledged, creates });
        return NOTHING;
      }
      case 'message':
        return this.#message(event.stream, this.#stream(event.stream), event.message);
    }
  }

  finish(): readonly Finding[] {
    return this.#watches.finish();
  }

  #stream(name: string): Stream {
    let stream = this.#streams.get(name);
    if (stream === undefined) {
      stream = { creating: [], watching: new Map(), asked: [], progress: 0, creates: 0 };
      this.#streams.set(name, stream);
    }
    return stream;
  }

  #create({ stream: of, from, start, end, noPut, noDelete }: Extract<WatchStreamEvent, { type: 'create' }>) {
    const stream = this.#stream(of);
    const span = { start, end, noPut: noPut === true, noDelete: noDelete === true };
    const watching = { name: `${of}/${stream.creates}`, span, from, place: stream.creates++, opened: false };
    stream.creating.push(watching);
    return from > 0 ? this.#open(watching, from) : NOTHING;
  }

  #open(watching: Watching, from: number): readonly Finding[] {
    watching.opened = true;
    return this.#watches.observe({ type: 'opened', watch: watching.name, from, ...watching.span });
  }

  #message(name: string, stream: Stream, message: StreamMessage): readonly Finding[] {
    if (message.created) return this.#created(name, stream, message);
    if (message.watchId === STREAM) return this.#progress(name, stream, message.revision);
    const watching = stream.watching.get(message.watchId);
    if (watching === undefined) {
      return [violation('watch stream: order', `${name} has a message for ${message.watchId}, which was not created`)];
    }
    const found: Finding[] = [];
    for (const change of message.events) {
      found.push(...this.#watches.observe({ type: 'event', watch: watching.name, ...change }));
    }
    if (message.canceled) stream.watching.delete(message.watchId);
    else if (!message.fragment) found.push(...this.#covered(watching, message.revision)); // S3
    return found;
  }

  /** S1. */
  #created(name: string, stream: Stream, message: StreamMessage): readonly Finding[] {
    const watching = stream.creating.shift();
    if (watching === undefined) return [violation('watch stream: order', `${name} has an answer to no create`)];
    if (message.canceled) return NOTHING;
    stream.watching.set(message.watchId, watching);
    if (watching.opened) return NOTHING;
    const found = this.#open(watching, message.revision + 1);
    if (message.revision >= stream.progress) return found;
    const detail = `${watching.name} begins behind ${message.revision}, where ${name} had progress to ${stream.progress}`;
    return [...found, violation('watch stream: progress', detail)]; // S2
  }

  /** S2, S4. */
  #progress(name: string, stream: Stream, revision: number): readonly Finding[] {
    const found: Finding[] = [];
    const { progress } = stream;
    const asked = stream.asked.shift() ?? { acknowledged: 0, creates: 0 };
    if (revision < progress) {
      found.push(violation('watch stream: back', `${name} has progress to ${revision} behind ${progress}`));
    }
    if (revision < asked.acknowledged) {
      const detail = `${name} has progress to ${revision}; ${asked.acknowledged} was acknowledged before it was asked for`;
      found.push(violation('watch stream: stale', detail));
    }
    stream.progress = Math.max(progress, revision);
    const awaited = stream.creating.filter(({ place }) => place < asked.creates);
    for (const watching of [...stream.watching.values(), ...awaited]) {
      if (watching.opened) found.push(...this.#covered(watching, revision));
    }
    return found;
  }

  /** A watch of the future has nothing to receive below its first revision. */
  #covered({ name, from }: Watching, revision: number): readonly Finding[] {
    if (from > revision) return NOTHING;
    return this.#watches.observe({ type: 'progress', watch: name, revision });
  }
}
