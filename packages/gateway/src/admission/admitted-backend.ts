import type { PlainNeed, Principal } from '@remora/auth';
import type { ClusterView, Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import type {
  Asked,
  Backend,
  BackendDone,
  LockWatchEnd,
  LockWatchListener,
  LockWatchOptions,
  RequestOptions,
  WatchControl,
  WatchListener,
  WatchOptions,
} from '../backend.ts';
import type { Admission } from './admission.ts';
import { classOfCommand, classOfQuery } from './request-class.ts';

/** A backend behind the gateway's limit. All services use it, so the limit holds for each of them. */
export class AdmittedBackend implements Backend {
  readonly #backend: Backend;
  readonly #admission: Admission;

  constructor(backend: Backend, admission: Admission) {
    this.#backend = backend;
    this.#admission = admission;
  }

  get nodeId(): number {
    return this.#backend.nodeId;
  }

  view(): ClusterView {
    return this.#backend.view();
  }

  rangeTimeMs(): number | undefined {
    return this.#backend.rangeTimeMs();
  }

  command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    const refusal = this.#admission.admit(options.givesUp === true ? 'charged' : classOfCommand(command));
    if (refusal === undefined) return this.#backend.command(command, options, done);
    done(refusal, undefined);
    return nothing;
  }

  query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    const refusal = this.#admission.admit(options.ofHeartbeat === true ? 'free' : classOfQuery(query));
    if (refusal === undefined) return this.#backend.query(query, options, done);
    done(refusal, undefined);
    return nothing;
  }

  /** Counts, and never refuses: an etcd client gives up all watches of a stream when one is refused. */
  watch(options: WatchOptions & Asked, listener: WatchListener): WatchControl {
    this.#admission.admit('charged');
    return this.#backend.watch(options, listener);
  }

  /** Counts, and never refuses, like `watch`. */
  watchLocks(
    options: LockWatchOptions & Asked,
    listener: LockWatchListener,
    onEnd: LockWatchEnd,
  ): Omit<WatchControl, 'progress'> {
    this.#admission.admit('charged');
    return this.#backend.watchLocks(options, listener, onEnd);
  }

  check(principal: Principal | undefined, needs: readonly PlainNeed[], action?: string): void {
    this.#backend.check(principal, needs, action);
  }
}

function nothing(): void {}
