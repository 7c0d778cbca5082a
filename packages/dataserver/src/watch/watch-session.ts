import { ServiceError } from '@remora/base';
import type { StreamContext, WatchCreate, WatchMessage, WatchRequest } from '@remora/protocol';
import type { ServedReplica } from '../range/served-replica.ts';
import { type WatchStream, watchEnded } from './watch-stream.ts';

/**
 * One gateway's stream of watches on this node; the watches may be on several ranges.
 *
 * WS1. A watch begins only while this replica leads: on a replica that does not lead, a watch would stay silent without
 *      notice.
 * WS2. A watch that is cancelled or closed while it waits for its ReadIndex never begins.
 * WS3. A session refers only to the replicas that its watches are on, because one stream outlives many replicas.
 * WS4. A watch "from now" begins behind every revision that any client received before the watch was requested,
 *      whatever range the revision was for. So the watch reports nothing that was acknowledged before, and nothing at
 *      or below the progress that another watch announced. To ensure that, the range first closes the newest revision.
 *      A range that counts by itself has closed it already.
 * WS5. A watch that names its first revision begins once nothing more is written below that revision, if the revision
 *      was allocated before (CL6 of the range). So a client that reads after the watch has begun, and does not see a
 *      change, receives that change from the watch.
 * WS6. A progress question is answered once the range has closed the newest revision that any client received before
 *      the question, so the answer names at least that revision. If closing fails, the watches receive the closed
 *      revision, which answers nothing, and the gateway asks again. A replica closes for one question at a time.
 *      Questions that arrive meanwhile are answered together by the next closing.
 */
export class WatchSession {
  readonly #find: (rangeId: number) => ServedReplica | ServiceError;
  readonly #context: StreamContext<WatchMessage>;
  readonly #streams = new Map<ServedReplica, WatchStream>();
  /** The replica of each watch. */
  readonly #replicas = new Map<number, ServedReplica>();
  readonly #beginning = new Set<number>();
  /** WS6. For replicas that are closing for a question: the newest question that arrived since; 0: none. */
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
    // The watch begins at a state that contains everything that was committed when it was requested.
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

/** The caller retries. */
function notClosed(cause: ServiceError): ServiceError {
  return new ServiceError('UNAVAILABLE', `revisions that were allocated earlier are not closed yet: ${cause.message}`, {
    cause,
  });
}
