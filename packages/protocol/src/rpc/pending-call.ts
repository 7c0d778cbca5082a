import { type ErrorCode, ServiceError } from '@remora/base';
import { isFinalRefusal } from './link-guard.ts';
import type { Sender } from './outbox.ts';
import type { CallHandle, Done, Method } from './rpc.ts';

interface CallTerms {
  readonly deadlineMs: number;
  readonly movable: boolean;
  readonly isOfGuard: boolean;
  readonly done: Done<unknown>;
  readonly onCancel: (id: number) => void;
}

/** The caller's state of a call, and the handle for the code that made it. */
export class PendingCall implements Sender, CallHandle {
  readonly id: number;
  readonly method: Method<unknown, unknown>;
  readonly done: Done<unknown>;
  readonly deadlineMs: number;
  readonly movable: boolean;
  /** LG2 of `link-guard.ts`. */
  readonly isOfGuard: boolean;
  readonly #onCancel: (id: number) => void;
  sent = false;
  canceled = false;

  constructor(id: number, method: Method<unknown, unknown>, terms: CallTerms) {
    this.id = id;
    this.method = method;
    this.done = terms.done;
    this.deadlineMs = terms.deadlineMs;
    this.movable = terms.movable;
    this.isOfGuard = terms.isOfGuard;
    this.#onCancel = terms.onCancel;
  }

  cancel(): void {
    this.#onCancel(this.id);
  }

  sending(): boolean {
    if (this.canceled) return false;
    this.sent = true;
    return true;
  }

  answer(raw: unknown): void {
    let reply: unknown;
    try {
      reply = this.method.decodeReply(raw);
    } catch (cause) {
      // The call was executed; an answer that cannot be read is a lost answer.
      this.done(new ServiceError('UNKNOWN_OUTCOME', `${this.method.name}: malformed reply`, { cause }), undefined);
      return;
    }
    this.done(undefined, reply);
  }
}

/** How a call ends without an answer (C1 of `caller.ts`). */
export function noAnswer(call: PendingCall, what: string, cause?: ServiceError): ServiceError {
  if (!call.sent && cause !== undefined) return unavailable(cause);
  const code = call.sent ? 'UNKNOWN_OUTCOME' : 'UNAVAILABLE';
  return new ServiceError(code, `${call.method.name} ${what}`, cause === undefined ? {} : { cause });
}

/** The same for a call that may be made elsewhere (C1 and C5 of `caller.ts`). */
export function muteError({ method, sent }: PendingCall): ServiceError {
  const code = sent ? 'UNKNOWN_OUTCOME' : 'UNAVAILABLE';
  return new ServiceError(code, `${method.name} got no sign of life`, { details: { mute: true } });
}

/** The reason for the end of a link, as an answer to calls that were never sent. Refusals keep their code. */
export function unavailable(reason: ServiceError): ServiceError {
  if (isRefusal(reason)) return reason;
  return new ServiceError('UNAVAILABLE', reason.message, { cause: reason });
}

const REFUSALS: ReadonlySet<ErrorCode> = new Set(['WRONG_CLUSTER', 'NODE_CONFLICT', 'VERSION_REFUSED']);

/** Another attempt at this peer would be refused for the same reason. */
export function isRefusal(reason: ServiceError): boolean {
  return REFUSALS.has(reason.code) || isFinalRefusal(reason);
}
