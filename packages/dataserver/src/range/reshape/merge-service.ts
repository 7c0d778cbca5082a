import { ServiceError } from '@remora/base';
import {
  type DecideMergeRequest,
  type Done,
  type MergeVerdict,
  type RpcRegistry,
  rangeDecideMerge,
  rangeRefuseMerge,
  rangeSeal,
  rangeSettle,
  rangeUnseal,
  type SettleRequest,
} from '@remora/protocol';
import { verdictOn } from '../../state/reshape/merging.ts';
import type { ServedReplica } from '../served-replica.ts';

export interface MergeServiceDeps {
  /** Returns the replica of a range that runs here, or why there is none. */
  readonly find: (rangeId: number) => ServedReplica | ServiceError;
  /** Resolves when everything applied before the call is durable without the log. */
  readonly checkpoint: () => Promise<void>;
}

/** Serves the calls of merge drivers (merge-driver.ts). */
export function serveMerges(registry: RpcRegistry, { find, checkpoint }: MergeServiceDeps): void {
  registry.handle(rangeSeal, ({ rangeId, epoch, into }, _context, done) => {
    const replica = find(rangeId);
    if (replica instanceof ServiceError) return done(replica, undefined);
    replica.merges.seal({ type: 'seal', epoch, into }, done);
  });
  registry.handle(rangeUnseal, ({ rangeId, from }, _context, done) => {
    const replica = find(rangeId);
    if (replica instanceof ServiceError) return done(replica, undefined);
    replica.merges.unseal(from, (error) => done(error, undefined));
  });
  registry.handle(rangeRefuseMerge, ({ targetId, round }, _context, done) => {
    const replica = find(targetId);
    if (replica instanceof ServiceError) return done(replica, undefined);
    replica.merges.refuse(round, (error) => done(error, undefined));
  });
  registry.handle(rangeDecideMerge, (request, _context, done) => {
    const replica = find(request.rangeId);
    if (replica instanceof ServiceError) return done(replica, undefined);
    decide(replica, request, done);
  });
  registry.handle(rangeSettle, (request, _context, done) => {
    const late = unsettled(find(request.rangeId), request);
    if (late !== undefined) return done(late, undefined);
    checkpoint().then(
      () => done(unsettled(find(request.rangeId), request), undefined),
      // The engine stops the node, or the node is stopping.
      (cause: unknown) => done(new ServiceError('UNAVAILABLE', 'no checkpoint could be made', { cause }), undefined),
    );
  });
}

/** Returns a range's verdict on a round; an open round is refused first (merges.ts MR4). */
function decide(replica: ServedReplica, request: DecideMergeRequest, done: Done<MergeVerdict>): void {
  if (wordOf(replica, request) !== 'open') return tell(replica, request, done);
  replica.merges.refuse(request.seal.round, (error) => {
    if (error === undefined) tell(replica, request, done);
    else done(error, undefined);
  });
}

function wordOf(replica: ServedReplica, { sourceId, seal }: DecideMergeRequest) {
  return verdictOn(seal, sourceId, replica.state);
}

function tell(replica: ServedReplica, request: DecideMergeRequest, done: Done<MergeVerdict>): void {
  const word = wordOf(replica, request);
  if (word === 'merged' || word === 'refused') return done(undefined, word);
  const { targetId, round } = request.seal;
  // The round is still open: a future round cannot be refused.
  const message =
    word === undefined
      ? `range ${replica.rangeId} has not taken over range ${targetId}`
      : `range ${replica.rangeId} knows nothing of round ${round} yet`;
  done(new ServiceError('UNAVAILABLE', message), undefined);
}

/** Why a replica has not, or no longer, reached the requested state; undefined if it has. */
function unsettled(
  replica: ServedReplica | ServiceError,
  { rangeId, replicaId, index }: SettleRequest,
): ServiceError | undefined {
  if (replica instanceof ServiceError) return replica;
  const there = replica.group.replicaId === replicaId && !replica.replacing;
  if (there && replica.state.applied.index >= index) return undefined;
  return new ServiceError('UNAVAILABLE', `replica ${replicaId} of range ${rangeId} has not applied entry ${index} yet`);
}
