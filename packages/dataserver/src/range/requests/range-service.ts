import { ServiceError, toServiceError } from '@remora/base';
import {
  asMs,
  type Command,
  checkCommand,
  type RangeRequest,
  RequestId,
  type RpcRegistry,
  rangeAwaitLeader,
  rangeCheckpoint,
  rangeExecute,
  rangeInfo,
  rangeLockWatch,
  rangeStatus,
  rangeTransferLeader,
  rangeWatch,
  schema,
} from '@remora/protocol';
import { LockWatchSession } from '../../lock-watch/lock-watch-session.ts';
import { WatchSession } from '../../watch/watch-session.ts';
import { transferLeaderTo } from '../membership/leader-transfer.ts';
import type { ServedReplica } from '../served-replica.ts';
import { rangeStatusOf } from '../stats/range-status.ts';
import type { LeaderWaits } from './leader-waits.ts';

const requestIds = schema.closedCodec(RequestId);

export interface RangeServiceDeps {
  readonly nodeId: number;
  /** Returns the replica of a range that runs here, or why there is none. */
  readonly find: (rangeId: number) => ServedReplica | ServiceError;
  readonly checkpoint: () => Promise<void>;
  readonly leaderWaits: LeaderWaits;
}

/**
 * Serves the range calls of gateways, local and remote.
 *
 * RS1. Nothing is proposed that the log's codec could not read back, because such an entry would stop every replica for
 *      good. Commands from other nodes have been through the codec; commands from this process have not, and are
 *      checked here.
 */
export function serveRanges(registry: RpcRegistry, deps: RangeServiceDeps): void {
  const { nodeId, find, checkpoint, leaderWaits } = deps;
  registry.handle(rangeExecute, (request, context, done) => {
    const replica = find(request.rangeId);
    if (replica instanceof ServiceError) return done(replica, undefined);
    const { body } = request;
    const malformed =
      context.caller.kind === 'local' && body.kind !== 'query' ? malformation(request, body.command) : undefined;
    if (malformed !== undefined) return done(malformed, undefined);
    replica.requests.execute(request, (fn) => context.onCancel(fn), done);
  });
  registry.handle(rangeInfo, (request, _context, done) => {
    const replica = find(request.rangeId);
    if (replica instanceof ServiceError) done(replica, undefined);
    else done(undefined, replica.info());
  });
  registry.handle(rangeAwaitLeader, (request, context, done) => {
    context.onCancel(leaderWaits.add(request, done));
  });
  registry.handle(rangeStatus, ({ rangeId }, _context, done) => {
    const replica = find(rangeId);
    if (replica instanceof ServiceError) done(replica, undefined);
    else done(undefined, rangeStatusOf(replica, { nodeId, watches: replica.hub.size }));
  });
  registry.handle(rangeTransferLeader, ({ rangeId, toNode }, _context, done) => {
    const replica = find(rangeId);
    done(replica instanceof ServiceError ? replica : transferLeaderTo(replica, toNode), undefined);
  });
  registry.handle(rangeCheckpoint, ({ rangeId }, _context, done) => {
    const replica = find(rangeId);
    if (replica instanceof ServiceError) return done(replica, undefined);
    checkpoint().then(
      () => done(undefined, undefined),
      (error: unknown) => done(toServiceError(error), undefined),
    );
  });
  registry.handleStream(rangeWatch, (first, context) => new WatchSession(find, context, first));
  registry.handleStream(rangeLockWatch, (request, context) => new LockWatchSession(find, context, request));
}

/** RS1. */
function malformation({ requestId, deadlineMs }: RangeRequest, command: Command): ServiceError | undefined {
  try {
    requestIds.decode(requestId);
    asMs(deadlineMs, 'deadlineMs');
    checkCommand(command);
    return undefined;
  } catch (error) {
    return toServiceError(error);
  }
}
