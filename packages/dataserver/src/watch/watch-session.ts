import { ServiceError } from '@remora/base';
import type { StreamContext, WatchCreate, WatchMessage, WatchRequest } from '@remora/protocol';
import type { ServedReplica } from '../range/served-replica.ts';
import { type WatchStream, watchEnded } from './watch-stream.ts';

/**
 * One gateway's stream of watches on this node; they may be on several ranges.
 *
 * WS1. A watch begins only while this replica leads: a watch on a replica that does not would fall silent unnoticed.
 * WS2. What is cancelled or closed while it waits for its ReadIndex never begins.
 * WS3. It knows the replicas that its watches are on, and no other: the stream of one outlives many of them.
 * WS4. A watch "from now" begins behind every revision that anybody was given before it was asked for, whatever range
 *      that was for: it is told nothing that was acknowledged before, and nothing at or below the progress that another
 *      watch had announced. So the range closes the newest revision first. A range that counts by itself has closed it.
 * WS5. One that names its first revision begins once nothing comes below that any more, if that was given out before
 *      (CL6 of the range): who reads when it has begun, and does not see a change, is told of it.
 * WS6. A question how far the watches are is answered once the range has closed the newest revision that anybody was
 *      given before, so the answer names at least that one. Where that fails, the watches are told what is closed,
 *      which answers nothing, and the gateway asks again. A replica closes for one question at a time, and then for the
 *      last of those that came meanwhile, which answers them all.
 */
export class WatchSession {
  readonly #find: (rangeId: number) => ServedReplica | ServiceError;
  readonly #context: StreamContext<WatchMessage>;
  readonly #streams = new Map<ServedReplica, WatchStream>();
  /** Where each watch is. */
  readonly #replicas = new Map<number, ServedReplica>();
  readonly #beginning = new Set<number>();
  /** WS6. Of replicas that close for a question: the last one that has come since; 0: none. */
  readonly #questions = new Map<ServedReplica, number>();

  constructor(
    find: (rangeId: number) => ServedReplica | ServiceError,
    context: StreamContext<WatchMessage>,
    first: WatchRequest,
  ) {
    this.#find = find;
    this.#context = context;
    context.onDrain(() => {
      for (const stream of this.#streams.values()) stream.drained();
    });
    this.onMessage(first);
  }

  onMessage(request: WatchRequest): void {
    if (request.kind === 'cancel') {
      this.#beginning.delete(request.watchId);
      this.#cancel(request.watchId);
    } else if (request.kind === 'progress') {
      for (const replica of this.#streams.keys()) this.#ask(replica, request.question);
    } else this.#create(request);
  }

  /** WS6. */
  #ask(replica: ServedReplica, question: number): void {
    if (this.#questions.has(replica)) {
      this.#questions.set(replica, question);
      return;
    }
    this.#questions.set(replica, 0);
    replica.closing.closeNewest((error) => {
      const next = this.#questions.get(replica) ?? 0;
      this.#questions.delete(replica);
      this.#streams.get(replica)?.progress(error === undefined ? question : 0);
      if (next > 0 && this.#streams.has(replica)) this.#ask(replica, next);
    });
  }

  #create(create: WatchCreate): void {
    const { watchId } = create;
    const replica = this.#find(create.rangeId);
    if (replica instanceof ServiceError) return this.#refuse(watchId, replica);
    const refusal = replica.watches.refusal(create);
    if (refusal !== undefined) return this.#refuse(watchId, refusal);
    this.#beginning.add(watchId);
    // It begins at a state that holds what was committed when it was asked for.
    replica.group.readIndex((refused) => {
      if (!this.#beginning.has(watchId)) return;
      if (refused !== undefined) return this.#begin(replica, create, replica.notLeader());
      const begin = (error: ServiceError | undefined): void =>
        this.#begin(replica, create, replica.watches.refusal(create) ?? (error && notClosed(error)));
      if (create.startRevision > 0) return replica.closing.whenUsedUp(create.startRevision - 1, begin); // WS5
      if (replica.state.descriptor.revisionSource === 'range') return this.#begin(replica, create);
      replica.closing.closeNewest(begin); // WS4
    });
  }

  /** WS2. */
  #begin(replica: ServedReplica, create: WatchCreate, refused = replica.watches.refusal(create)): void {
    const { watchId } = create;
    if (!this.#beginning.delete(watchId)) return;
    if (refused !== undefined) return this.#refuse(watchId, refused);
    this.#replicas.set(watchId, replica);
    this.#stream(replica).create(create);
  }

  #cancel(watchId: number): void {
    const replica = this.#replicas.get(watchId);
    if (replica === undefined) return;
    this.#streams.get(replica)?.cancel(watchId);
    this.#left(watchId, replica);
  }

  /** WS3. */
  #left(watchId: number, replica: ServedReplica): void {
    if (this.#replicas.get(watchId) === replica) this.#replicas.delete(watchId);
    const stream = this.#streams.get(replica);
    if (stream === undefined || !stream.empty) return;
    replica.watches.closeStream(stream);
    this.#streams.delete(replica);
  }

  #stream(replica: ServedReplica): WatchStream {
    let stream = this.#streams.get(replica);
    if (stream === undefined) {
      stream = replica.watches.openStream({ send: (message) => this.#send(message, replica) });
      this.#streams.set(replica, stream);
    }
    return stream;
  }

  #send(message: WatchMessage, replica: ServedReplica): boolean {
    if (message.kind === 'ended') this.#left(message.watchId, replica);
    return this.#context.send(message);
  }

  #refuse(watchId: number, error: ServiceError): void {
    this.#context.send(watchEnded(watchId, error));
  }

  onClose(): void {
    for (const [replica, stream] of this.#streams) replica.watches.closeStream(stream);
    this.#streams.clear();
    this.#replicas.clear();
    this.#beginning.clear();
  }
}

/** Whoever asks tries again. */
function notClosed(cause: ServiceError): ServiceError {
  return new ServiceError('UNAVAILABLE', `what was given out is not closed: ${cause.message}`, { cause });
}
