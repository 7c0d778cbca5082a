import { ERROR_TABLE, type ErrorCode, type ServiceError } from '@remora/base';
import type { ApiAnswer } from './api-types.ts';

/**
 * HTTP statuses of errors. Programs branch on the code in the body, which says more.
 *
 * HS1. 423 means that another owner has the lock, and nothing else has this status: a script can branch on it.
 * HS2. Requests with the statuses that tools repeat by themselves (408, 429, 502, 503, 504) may be repeated unchanged.
 */
const STATUSES: Readonly<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 400,
  EMPTY_KEY: 400,
  DUPLICATE_KEY: 400,
  TOO_MANY_OPERATIONS: 400,
  REQUEST_TOO_LARGE: 413,
  COMPACTED: 410,
  FUTURE_REVISION: 400,
  KEY_NOT_FOUND: 404,
  KEY_CHANGED: 409,
  LEASE_NOT_FOUND: 410,
  LEASE_EXISTS: 409,
  LEASE_TTL_TOO_LARGE: 400,
  SESSION_EXPIRED: 410,
  LOCK_NOT_HELD: 409,
  LOCK_WRONG_OWNER: 409,
  LOCK_BUSY: 423,
  LOCK_CANCELED: 409,
  LOCK_TIMEOUT: 423,
  LOCK_DEPTH_EXCEEDED: 409,
  FENCED: 409,
  LOCK_KIND_MISMATCH: 409,
  LOCK_UPGRADE_CONFLICT: 409,
  LOCK_SELF_WAIT: 409,
  LOCK_PERMITS_EXCEEDED: 409,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  AUTH_REFUSED: 409,
  RANGE_NOT_FOUND: 503,
  NOT_LEADER: 503,
  STALE_AUTH: 503,
  STALE_EPOCH: 503,
  UNAVAILABLE: 503,
  RESOURCE_EXHAUSTED: 429,
  DEADLINE_EXCEEDED: 504,
  CANCELED: 409,
  UNIMPLEMENTED: 501,
  UNKNOWN_OUTCOME: 504,
  RESULT_LOST: 500,
  WRONG_CLUSTER: 409,
  NODE_CONFLICT: 409,
  VERSION_REFUSED: 409,
  INTERNAL: 500,
};

/** Details of refusals for which HTTP has a status and the table has no code. */
export interface HttpDetails {
  readonly httpStatus: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * RFC 9110 wants a challenge with each 401. Basic works as well, but is not offered: browsers would ask people for
 * their password.
 */
const CHALLENGE = { 'www-authenticate': 'Bearer realm="remora"' };

/** Additional fields in the body of an error. */
interface ShownDetails {
  readonly shown: Readonly<Record<string, unknown>>;
}

/** Details of errors from ranges that an answer has. */
interface Told {
  readonly retryAfterMs: number;
  readonly compactRevision: number;
}

export function errorAnswer(error: ServiceError): ApiAnswer {
  const { code, message, details } = error;
  const own = details as Partial<HttpDetails & ShownDetails & Told> | undefined;
  const after = own?.retryAfterMs;
  const status = own?.httpStatus ?? STATUSES[code];
  return {
    status,
    headers: {
      ...own?.headers,
      ...(status === 401 ? CHALLENGE : {}),
      ...(after === undefined ? {} : { 'retry-after': String(Math.ceil(after / 1000)) }),
    },
    body: { error: { code, message, retry: adviceOf(code), ...compactedAt(code, own), ...own?.shown } },
  };
}

function compactedAt(code: ErrorCode, told: Partial<Told> | undefined): Partial<Told> {
  const compactRevision = told?.compactRevision;
  return code === 'COMPACTED' && compactRevision !== undefined ? { compactRevision } : {};
}

/**
 * `no`: the call would be refused again; `same`: repeat it unchanged, at any node; `later`: repeat it after a pause.
 */
function adviceOf(code: ErrorCode): 'no' | 'same' | 'later' {
  // The SDK retries reads by itself; the answer tells HTTP clients that they may.
  if (code === 'DEADLINE_EXCEEDED') return 'same';
  const { retry } = ERROR_TABLE[code];
  return retry === 'no' || retry === 'later' ? retry : 'same';
}
