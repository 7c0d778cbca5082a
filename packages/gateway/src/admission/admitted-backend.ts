import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';
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
import { BackendDecorator } from '../backend-decorator.ts';
import type { Admission } from './admission.ts';
import { classOfCommand, classOfQuery } from './request-class.ts';

/** A backend behind the gateway's limit. All services use it, so the limit holds for each of them. */
export class AdmittedBackend extends BackendDecorator {
  readonly #admission: Admission;

  constructor(backend: Backend, admission: Admission) {
    super(backend);
    this.#admission = admission;
  }

  override command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    const refusal = this.#admission.admit(options.givesUp === true ? 'charged' : classOfCommand(command));
    if (refusal === undefined) return super.command(command, options, done);
    done(refusal, undefined);
    return nothing;
  }

  override query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    const refusal = this.#admission.admit(options.ofHeartbeat === true ? 'free' : classOfQuery(query));
    if (refusal === undefined) return super.query(query, options, done);
    done(refusal, undefined);
    return nothing;
  }

  /** Counts, and never refuses: an etcd client gives up all watches of a stream when one is refused. */
  override watch(options: WatchOptions & Asked, listener: WatchListener): WatchControl {
    this.#admission.admit('charged');
    return super.watch(options, listener);
  }

  /** Counts, and never refuses, like `watch`. */
  override watchLocks(
    options: LockWatchOptions & Asked,
    listener: LockWatchListener,
    onEnd: LockWatchEnd,
  ): Omit<WatchControl, 'progress'> {
    this.#admission.admit('charged');
    return super.watchLocks(options, listener, onEnd);
  }
}

function nothing(): void {}
