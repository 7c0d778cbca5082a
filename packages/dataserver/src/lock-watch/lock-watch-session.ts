import { ServiceError } from '@remora/base';
import type { LockNews } from '@remora/lock';
import type { LockWatchRequest, StreamContext, StreamSink } from '@remora/protocol';
import type { ServedReplica } from '../range/served-replica.ts';
import type { LockListener } from './lock-listener.ts';

type Context = StreamContext<readonly LockNews[]>;

/**
 * Serves one stream of events of the locks of one range.
 *
 * LW1. The stream begins only while this replica leads, with a state that contains everything committed when it was
 *      requested. It ends as soon as the replica no longer leads, or some of the locks no longer belong to its range.
 * LW2. A stream that is closed while it waits for its ReadIndex never begins.
 */
export class LockWatchSession implements StreamSink<LockWatchRequest> {
  readonly #context: Context;
  #replica: ServedReplica | undefined;
  #listener: LockListener | undefined;
  #closed = false;

  constructor(find: (rangeId: number) => ServedReplica | ServiceError, context: Context, request: LockWatchRequest) {
    this.#context = context;
    context.onDrain(() => this.#listener?.drained());
    this.#begin(find(request.rangeId), request);
  }

  #begin(replica: ServedReplica | ServiceError, request: LockWatchRequest): void {
    const context = this.#context;
    if (replica instanceof ServiceError) return context.end(replica);
    const refusal = replica.watches.lockRefusal(request);
    if (refusal !== undefined) return context.end(refusal);
    replica.group.readIndex((refused) => {
      if (this.#closed) return; // LW2
      const late = refused === undefined ? replica.watches.lockRefusal(request) : replica.notLeader();
      if (late === undefined) this.#listen(replica, request);
      else context.end(late);
    });
  }

  #listen(replica: ServedReplica, request: LockWatchRequest): void {
    this.#replica = replica;
    this.#listener = replica.lockListeners.add(request, {
      send: (news) => this.#context.send(news),
      end: (error) => this.#context.end(error),
    });
    // The receiver may have closed the stream while the first state was sent.
    if (this.#closed) this.onClose();
  }

  onMessage(): void {}

  onClose(): void {
    this.#closed = true;
    if (this.#listener !== undefined) this.#replica?.lockListeners.remove(this.#listener);
  }
}
