import type { ServiceError } from '@remora/base';
import type { CommandResult, QueryResult } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { BackendDone, BackendReply } from '../backend.ts';
import type { CallDone } from '../calls.ts';
import type { Headers } from './headers.ts';
import { expectType } from './kv-responses.ts';

type AnyResult = CommandResult | QueryResult;

/** Returns a `BackendDone` that answers a call with the response that `respond` makes of the result and the header. */
export function answering<Type extends AnyResult['type'], Response>(
  headers: Headers,
  done: CallDone<Response>,
  type: Type,
  respond: (result: Extract<AnyResult, { readonly type: Type }>, header: pb.ResponseHeader) => Response,
): BackendDone<AnyResult> {
  return (error: ServiceError | undefined, reply: BackendReply<AnyResult> | undefined) => {
    if (reply === undefined) done(error, undefined);
    else done(undefined, respond(expectType(reply.result, type), headers.make(reply.revision, reply.raftTerm)));
  };
}
