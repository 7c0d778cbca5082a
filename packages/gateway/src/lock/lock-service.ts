import { createHash } from 'node:crypto';
import { type Random, ServiceError, toServiceError } from '@remora/base';
import type { LockCommand, LockQuery, LockQueryResult, LockResult } from '@remora/lock';
import { type CommandResult, NO_OWNER, type QueryResult } from '@remora/protocol';
import type * as pb from '@remora/protocol/remora';
import type { Backend, BackendDone, BackendReply, RequestOptions } from '../backend.ts';
import type { CallDone, CallInfo, GiveUp } from '../calls.ts';
import { randomLeaseId } from '../etcd/lease-service.ts';
import {
  toAcquire,
  toAttributes,
  toCancel,
  toCheck,
  toDowngrade,
  toForceRelease,
  toForget,
  toList,
  toRelease,
  toRequestId,
  toRevoke,
  toSession,
  toSetCapacity,
  toSetData,
  toShow,
  toWaitMs,
} from './lock-requests.ts';
import {
  fromAcquire,
  fromCancel,
  fromCheck,
  fromDowngrade,
  fromForceRelease,
  fromForget,
  fromList,
  fromRelease,
  fromRevoke,
  fromSetCapacity,
  fromSetData,
  fromShow,
} from './lock-responses.ts';
import { toTerms } from './session-messages.ts';

/**
 * The unary calls of `remora.v1.Lock` over a backend.
 *
 * LA1. A request that is repeated with the same id is the same command at any gateway, and so is the lease id chosen
 *      for a session: another lease might have its home in another range, which does not remember the request.
 */
export class LockApi {
  readonly #backend: Backend;
  readonly #random: Random;

  constructor(backend: Backend, random: Random) {
    this.#backend = backend;
    this.#random = random;
  }

  openSession(request: pb.OpenSessionRequest, call: CallInfo, done: CallDone<pb.OpenSessionResponse>): GiveUp {
    const terms = toTerms(request);
    const attributes = toAttributes(request.attributes);
    return this.#backend.command(
      { type: 'leaseGrant', id: this.#leaseOf(request.requestId, call), attributes, ...terms, owner: NO_OWNER },
      options(call, request.requestId),
      answering(done, (result: CommandResult) => {
        if (result.type !== 'leaseGrant') throw unexpected(result.type);
        return { session: { id: result.id, incarnation: BigInt(result.incarnation) }, ttlMs: result.ttlMs };
      }),
    );
  }

  /** LA1. */
  #leaseOf(requestId: string, { principal }: CallInfo): bigint {
    if (requestId === '') return randomLeaseId(this.#random);
    const whose = principal?.name === undefined ? requestId : JSON.stringify([principal.name, requestId]);
    return (createHash('sha256').update(whose).digest().readBigUInt64BE() >> 1n) | 1n;
  }

  /** Closing a session that has ended succeeds, so that the call can be repeated. */
  closeSession(request: pb.CloseSessionRequest, call: CallInfo, done: CallDone<pb.CloseSessionResponse>): GiveUp {
    const { lease, incarnation } = toSession(request.session);
    const answer = answering(done, () => ({}));
    return this.#backend.command(
      { type: 'leaseRevoke', id: lease, incarnation },
      options(call, request.requestId),
      (error, reply) => {
        if (error?.code === 'LEASE_NOT_FOUND') done(undefined, {});
        else answer(error, reply);
      },
    );
  }

  acquire(request: pb.AcquireRequest, call: CallInfo, done: CallDone<pb.AcquireResponse>): GiveUp {
    const command = toAcquire(request);
    const wanted = options(call, request.requestId);
    if (!request.wait) return this.#lock(command, wanted, done, fromAcquire);
    const waitMs = toWaitWithin(toWaitMs(request.timeoutMs), call.callerMs);
    return this.#lock(command, waitMs === undefined ? wanted : { ...wanted, waitMs }, done, fromAcquire);
  }

  cancel(request: pb.CancelRequest, call: CallInfo, done: CallDone<pb.CancelResponse>): GiveUp {
    return this.#lock(toCancel(request), options(call, request.requestId), done, fromCancel);
  }

  release(request: pb.ReleaseRequest, call: CallInfo, done: CallDone<pb.ReleaseResponse>): GiveUp {
    return this.#lock(toRelease(request), options(call, request.requestId), done, fromRelease);
  }

  forceRelease(request: pb.ForceReleaseRequest, call: CallInfo, done: CallDone<pb.ForceReleaseResponse>): GiveUp {
    return this.#lock(toForceRelease(request), options(call, request.requestId), done, fromForceRelease);
  }

  downgrade(request: pb.DowngradeRequest, call: CallInfo, done: CallDone<pb.DowngradeResponse>): GiveUp {
    return this.#lock(toDowngrade(request), options(call, request.requestId), done, fromDowngrade);
  }

  setCapacity(request: pb.SetCapacityRequest, call: CallInfo, done: CallDone<pb.SetCapacityResponse>): GiveUp {
    return this.#lock(toSetCapacity(request), options(call, request.requestId), done, fromSetCapacity);
  }

  setData(request: pb.SetDataRequest, call: CallInfo, done: CallDone<pb.SetDataResponse>): GiveUp {
    return this.#lock(toSetData(request), options(call, request.requestId), done, fromSetData);
  }

  revoke(request: pb.RevokeRequest, call: CallInfo, done: CallDone<pb.RevokeResponse>): GiveUp {
    return this.#lock(toRevoke(request), options(call, request.requestId), done, fromRevoke);
  }

  forget(request: pb.ForgetRequest, call: CallInfo, done: CallDone<pb.ForgetResponse>): GiveUp {
    return this.#lock(toForget(request), options(call, request.requestId), done, fromForget);
  }

  show(request: pb.ShowRequest, call: CallInfo, done: CallDone<pb.ShowResponse>): GiveUp {
    return this.#query(toShow(request), call, done, fromShow);
  }

  list(request: pb.ListRequest, call: CallInfo, done: CallDone<pb.ListResponse>): GiveUp {
    return this.#query(toList(request), call, done, fromList);
  }

  check(request: pb.CheckRequest, call: CallInfo, done: CallDone<pb.CheckResponse>): GiveUp {
    return this.#query(toCheck(request), call, done, fromCheck);
  }

  #lock<Response>(
    command: LockCommand,
    wanted: RequestOptions,
    done: CallDone<Response>,
    respond: (result: LockResult) => Response,
  ): GiveUp {
    const answer = answering(done, (result: CommandResult) => {
      if (result.type !== 'lock') throw unexpected(result.type);
      return respond(result.result);
    });
    return this.#backend.command({ type: 'lock', command }, wanted, answer);
  }

  #query<Response>(
    query: LockQuery,
    call: CallInfo,
    done: CallDone<Response>,
    respond: (result: LockQueryResult) => Response,
  ): GiveUp {
    const answer = answering(done, (result: QueryResult) => {
      if (result.type !== 'lock') throw unexpected(result.type);
      return respond(result.result);
    });
    return this.#backend.query({ type: 'lock', query }, queryOptions(call), answer);
  }
}

export function options(call: CallInfo, requestId: string): RequestOptions {
  const id = toRequestId(requestId);
  const { timeoutMs, principal, trace } = call;
  if (id === undefined) return { timeoutMs, principal, trace };
  return { timeoutMs, principal, trace, requestId: id, isChosenId: true };
}

export function queryOptions({ timeoutMs, principal, trace }: CallInfo): RequestOptions {
  return { timeoutMs, principal, trace };
}

/**
 * The wait ends a little before the call, so that the place in the queue is given up, and does not outlive a client
 * that no longer listens. Undefined: no limit.
 */
function toWaitWithin(waitMs: number | undefined, callerMs: number | undefined): number | undefined {
  if (callerMs === undefined) return waitMs;
  const withinCall = Math.max(1, callerMs - Math.min(500, callerMs / 5));
  return waitMs === undefined ? withinCall : Math.min(waitMs, withinCall);
}

/** Answers with the response that `respond` makes of the result; it throws a refusal. */
export function answering<Result, Response>(
  done: CallDone<Response>,
  respond: (result: Result) => Response,
): BackendDone<Result> {
  return (error: ServiceError | undefined, reply: BackendReply<Result> | undefined) => {
    if (reply === undefined) return done(error, undefined);
    let response: Response;
    try {
      response = respond(reply.result);
    } catch (thrown) {
      return done(toServiceError(thrown), undefined);
    }
    done(undefined, response);
  };
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `the range answered with "${type}", which does not fit the request`);
}
