import { ServiceError } from '@remora/base';
import type { CommandResult, QueryResult } from '@remora/protocol';
import type * as pb from '@remora/protocol/remora';
import type { Backend } from '../backend.ts';
import type { CallDone, CallInfo, GiveUp } from '../calls.ts';
import { toSession } from './lock-requests.ts';
import { answering, options, queryOptions } from './lock-service.ts';
import { fromSessionInfo, fromSessionLock, toListSessions, toShowSession, toTerms } from './session-messages.ts';

/** The calls of `remora.v1.Lock` about sessions of any client. */
export class SessionApi {
  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  change(request: pb.ChangeSessionRequest, call: CallInfo, done: CallDone<pb.ChangeSessionResponse>): GiveUp {
    const { lease: id, incarnation } = toSession(request.session);
    const { number } = request;
    if (incarnation === 0 || number === 0) {
      throw new ServiceError(
        'INVALID_ARGUMENT',
        'a change needs the lease and the incarnation of a session, and a number from 1',
      );
    }
    return this.#backend.command(
      { type: 'leaseChange', id, incarnation, number, ...toTerms(request) },
      options(call, request.requestId),
      answering(done, (result: CommandResult) => {
        if (result.type !== 'leaseChange') throw unexpected(result.type);
        return { ttlMs: result.ttlMs };
      }),
    );
  }

  list(request: pb.ListSessionsRequest, call: CallInfo, done: CallDone<pb.ListSessionsResponse>): GiveUp {
    return this.#backend.query(
      toListSessions(request),
      queryOptions(call),
      answering(done, (result: QueryResult) => {
        if (result.type !== 'sessions') throw unexpected(result.type);
        return { sessions: result.sessions.map(fromSessionInfo), next: result.next };
      }),
    );
  }

  show(request: pb.ShowSessionRequest, call: CallInfo, done: CallDone<pb.ShowSessionResponse>): GiveUp {
    return this.#backend.query(
      toShowSession(request),
      queryOptions(call),
      answering(done, (result: QueryResult) => {
        if (result.type !== 'session') throw unexpected(result.type);
        const { session, locks, more } = result;
        return {
          session: session === undefined ? undefined : fromSessionInfo(session),
          locks: locks.map(fromSessionLock),
          more,
        };
      }),
    );
  }
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `the range answered with "${type}", which does not fit the request`);
}
