/**
 * Checks the requests that gateways refuse because they are over a limit.
 *
 * M1. Heartbeats, and commands that end something (a lock, a place in a queue, a lease), are never refused: otherwise
 *     living sessions would end, and waiters would be kept waiting.
 */
import type { ServiceError } from '@remora/base';
import type { Backend, BackendDone } from '@remora/gateway';
import type { LockCommand } from '@remora/lock';
import type { Command, Query } from '@remora/protocol';
import { Violation } from '../../common/violation.ts';

/** The commands about locks that end nothing. */
const REFUSABLE: ReadonlySet<LockCommand['type']> = new Set([
  'acquire',
  'setCapacity',
  'setData',
  'setDepth',
  'forget',
]);
const ALWAYS_LET_IN: ReadonlySet<(Command | Query)['type']> = new Set(['leaseKeepAlive', 'leaseRevoke', 'status']);

/** M1. Why a request may not be refused like this; empty if it may. */
export function wronglyRefused(request: Command | Query, { code }: Pick<ServiceError, 'code'>): string {
  if (code !== 'RESOURCE_EXHAUSTED') return '';
  const endsLock = request.type === 'lock' && 'command' in request && !REFUSABLE.has(request.command.type);
  return endsLock || ALWAYS_LET_IN.has(request.type) ? `a gateway refused ${request.type} for a limit` : '';
}

/** A gateway's connection to the ranges, with its refusals checked. */
export function checkedLimits(backend: Backend, fail: (error: unknown) => void): Backend {
  function refusing<Result>(request: Command | Query, done: BackendDone<Result>): BackendDone<Result> {
    return (error, reply) => {
      const wrong = error === undefined ? '' : wronglyRefused(request, error);
      if (wrong !== '') fail(new Violation('limits spare what ends load', wrong));
      done(error, reply);
    };
  }
  return {
    nodeId: backend.nodeId,
    view: () => backend.view(),
    rangeTimeMs: () => backend.rangeTimeMs(),
    check: (principal, needs) => backend.check(principal, needs),
    watch: (options, listener) => backend.watch(options, listener),
    watchLocks: (options, listener, onEnd) => backend.watchLocks(options, listener, onEnd),
    command: (command, options, done) => backend.command(command, options, refusing(command, done)),
    query: (query, options, done) => backend.query(query, options, refusing(query, done)),
  };
}
