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
} from './backend.ts';

/** A backend around another one: it passes on everything that a subclass does not do in its own way. */
export abstract class BackendDecorator implements Backend {
  protected readonly inner: Backend;

  constructor(inner: Backend) {
    this.inner = inner;
  }

  get nodeId(): number {
    return this.inner.nodeId;
  }

  view(): ClusterView {
    return this.inner.view();
  }

  rangeTimeMs(): number | undefined {
    return this.inner.rangeTimeMs();
  }

  command(command: Command, options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    return this.inner.command(command, options, done);
  }

  query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    return this.inner.query(query, options, done);
  }

  watch(options: WatchOptions & Asked, listener: WatchListener): WatchControl {
    return this.inner.watch(options, listener);
  }

  watchLocks(
    options: LockWatchOptions & Asked,
    listener: LockWatchListener,
    onEnd: LockWatchEnd,
  ): Omit<WatchControl, 'progress'> {
    return this.inner.watchLocks(options, listener, onEnd);
  }

  check(principal: Principal | undefined, needs: readonly PlainNeed[], action?: string): void {
    this.inner.check(principal, needs, action);
  }
}
