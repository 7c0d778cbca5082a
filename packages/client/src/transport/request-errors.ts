/** What the errors of requests mean to the other parts of the client. */
import { ServiceError } from '@remora/base';

/** The range, or the gateway itself, did not answer. */
export function isNoAnswer({ code }: ServiceError): boolean {
  return code === 'UNAVAILABLE' || code === 'DEADLINE_EXCEEDED' || code === 'UNKNOWN_OUTCOME';
}

/** Sending the same request again would end in the same error. */
export function isLasting({ code, retry }: ServiceError): boolean {
  return retry === 'no' && code !== 'DEADLINE_EXCEEDED';
}

/** The lease does not exist: it was revoked, or it expired. */
export function isLeaseGone(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'LEASE_NOT_FOUND';
}

export function clientClosed(): ServiceError {
  return new ServiceError('CANCELED', 'the client is closed');
}
