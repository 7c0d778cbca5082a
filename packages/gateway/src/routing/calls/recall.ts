import { type Bytes, ServiceError, type Span } from '@remora/base';
import type { Command, CommandResult, RangeReply, RangeRequest } from '@remora/protocol';
import type { Clearance } from '../../authorisation/clearance.ts';
import type { BackendDone } from '../../backend.ts';
import { routingKey } from '../routes/request-keys.ts';
import { type RequestCompletion, type RequestDeps, RoutedCall, type RoutedRequest } from './request.ts';
import { ATTEMPT_MS } from './routed-query.ts';

export interface Recalled {
  readonly command: Command;
  readonly requestId: string;
  readonly timeoutMs: number;
  /** Why its client may not send the command, or may not any more. */
  readonly refusal: ServiceError;
  /** Whether the client is known to have sent it before. */
  readonly again: boolean;
}

/**
 * Asks for the outcome of a command that its client may not send, and may have sent before, when that was allowed.
 *
 * RC1. The answer is the outcome, if the range of the command's first key remembers it whole. It is the refusal if
 *      nothing is known of an earlier attempt, neither by the client nor by the range. Otherwise the outcome is
 *      unknown: that attempt may still be applied.
 */
export class Recall implements RoutedRequest, RequestCompletion {
  readonly command = false;
  readonly requestId: string;
  readonly timeoutMs: number;
  /** The range executes nothing, and needs no deadline. */
  readonly deadlineMs = 0;
  readonly attemptMs = ATTEMPT_MS;
  readonly awaits = false;
  readonly clearance: Clearance;
  readonly #recalled: Recalled;
  readonly #done: BackendDone<CommandResult>;
  readonly #call: RoutedCall;

  constructor(deps: RequestDeps, recalled: Recalled, done: BackendDone<CommandResult>) {
    this.requestId = recalled.requestId;
    this.timeoutMs = recalled.timeoutMs;
    this.#recalled = recalled;
    this.#done = done;
    this.clearance = {
      revision: 0,
      again: (_revision, _timeoutMs, refused) => {
        refused(recalled.refusal);
        return () => {};
      },
      onRefused: undefined,
    };
    this.#call = new RoutedCall(deps, this, this);
  }

  start(): void {
    this.#call.start();
  }

  cancel(): void {
    this.#call.cancel();
  }

  get key(): Bytes {
    return routingKey(this.#recalled.command);
  }

  span(): Span | undefined {
    return undefined;
  }

  build(): RangeRequest['body'] {
    return { kind: 'recall', command: this.#recalled.command };
  }

  /** RC1. */
  completed(error: ServiceError | undefined, reply: RangeReply | undefined): void {
    if (reply !== undefined && reply.result.type !== 'txnPart') {
      return this.#done(undefined, reply as RangeReply & { readonly result: CommandResult });
    }
    const { again, refusal } = this.#recalled;
    if (error !== undefined && error !== refusal && !NO_OUTCOME.has(error.code)) return this.#done(error, undefined);
    if (!again && error?.code !== 'UNKNOWN_OUTCOME' && reply === undefined) return this.#done(refusal, undefined);
    const message = `an earlier attempt may have been applied, and the request is not allowed any more: ${refusal.message}`;
    this.#done(new ServiceError('UNKNOWN_OUTCOME', message, { cause: refusal }), undefined);
  }
}

/** Errors that are no remembered outcome. */
const NO_OUTCOME: ReadonlySet<ServiceError['code']> = new Set([
  ...(['UNAUTHENTICATED', 'PERMISSION_DENIED', 'UNKNOWN_OUTCOME', 'DEADLINE_EXCEEDED', 'UNAVAILABLE'] as const),
  ...(['STALE_EPOCH', 'RESOURCE_EXHAUSTED', 'INTERNAL'] as const),
]);
