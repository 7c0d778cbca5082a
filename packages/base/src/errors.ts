/**
 * What a caller may do after an error. - `no`: the request is invalid or its outcome is final; repeating it changes
 * nothing. - `sameRequest`: repeat it with the same request id. - `refreshRoute`: look the route up again, then repeat
 * it with the same request id. - `later`: repeat it after a pause (the server is over a limit or not ready).
 */
export type RetryAdvice = 'no' | 'sameRequest' | 'refreshRoute' | 'later';

/** The closed table of expected failures. `grpc` is the canonical status number that gateways answer with. */
export const ERROR_TABLE = {
  // Requests that are wrong whatever the state of the cluster.
  INVALID_ARGUMENT: { grpc: 3, retry: 'no' },
  EMPTY_KEY: { grpc: 3, retry: 'no' },
  DUPLICATE_KEY: { grpc: 3, retry: 'no' },
  TOO_MANY_OPERATIONS: { grpc: 3, retry: 'no' },
  REQUEST_TOO_LARGE: { grpc: 3, retry: 'no' },
  // Refused by the state of the data.
  COMPACTED: { grpc: 11, retry: 'no' },
  FUTURE_REVISION: { grpc: 11, retry: 'no' },
  KEY_NOT_FOUND: { grpc: 5, retry: 'no' },
  KEY_CHANGED: { grpc: 9, retry: 'no' },
  LEASE_NOT_FOUND: { grpc: 5, retry: 'no' },
  LEASE_EXISTS: { grpc: 9, retry: 'no' },
  LEASE_TTL_TOO_LARGE: { grpc: 11, retry: 'no' },
  SESSION_EXPIRED: { grpc: 5, retry: 'no' },
  LOCK_NOT_HELD: { grpc: 9, retry: 'no' },
  LOCK_WRONG_OWNER: { grpc: 9, retry: 'no' },
  LOCK_BUSY: { grpc: 9, retry: 'no' },
  LOCK_CANCELED: { grpc: 1, retry: 'no' },
  LOCK_TIMEOUT: { grpc: 4, retry: 'no' },
  LOCK_DEPTH_EXCEEDED: { grpc: 9, retry: 'no' },
  FENCED: { grpc: 9, retry: 'no' },
  LOCK_KIND_MISMATCH: { grpc: 9, retry: 'no' },
  LOCK_UPGRADE_CONFLICT: { grpc: 9, retry: 'no' },
  LOCK_SELF_WAIT: { grpc: 9, retry: 'no' },
  LOCK_PERMITS_EXCEEDED: { grpc: 9, retry: 'no' },
  // Refused because of users, roles and permissions.
  UNAUTHENTICATED: { grpc: 16, retry: 'no' },
  PERMISSION_DENIED: { grpc: 7, retry: 'no' },
  AUTH_REFUSED: { grpc: 9, retry: 'no' },
  STALE_AUTH: { grpc: 14, retry: 'sameRequest' },
  RANGE_NOT_FOUND: { grpc: 5, retry: 'refreshRoute' },
  // Not done here, or not now; nothing was changed.
  NOT_LEADER: { grpc: 14, retry: 'refreshRoute' },
  STALE_EPOCH: { grpc: 14, retry: 'refreshRoute' },
  UNAVAILABLE: { grpc: 14, retry: 'sameRequest' },
  RESOURCE_EXHAUSTED: { grpc: 8, retry: 'later' },
  DEADLINE_EXCEEDED: { grpc: 4, retry: 'no' },
  CANCELED: { grpc: 1, retry: 'no' },
  UNIMPLEMENTED: { grpc: 12, retry: 'no' },
  // Sent, but the answer is lost: the request may have been applied. Never reported as failed.
  UNKNOWN_OUTCOME: { grpc: 2, retry: 'sameRequest' },
  // The request was applied, and its result is lost for good: too large to send or to keep, or not remembered in every
  // range.
  RESULT_LOST: { grpc: 2, retry: 'no' },
  // Node and cluster.
  WRONG_CLUSTER: { grpc: 9, retry: 'no' },
  NODE_CONFLICT: { grpc: 9, retry: 'no' },
  VERSION_REFUSED: { grpc: 9, retry: 'no' },
  INTERNAL: { grpc: 13, retry: 'no' },
} as const satisfies Record<string, { grpc: number; retry: RetryAdvice }>;

export type ErrorCode = keyof typeof ERROR_TABLE;

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_TABLE, text);
}

/**
 * An expected failure, with a code to branch on. `details` is plain data that travels with it (a current leader, a
 * revision).
 */
export class ServiceError extends Error {
  /** The name under which the SDK exports it. */
  override readonly name = 'RemoraError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { readonly details?: Readonly<Record<string, unknown>>; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.details = options.details;
  }

  get retry(): RetryAdvice {
    return ERROR_TABLE[this.code].retry;
  }

  /** True when it is not known whether the request was applied. */
  get outcomeUnknown(): boolean {
    return this.code === 'UNKNOWN_OUTCOME';
  }

  /** True when the request was applied, or may have been, although this error was returned. */
  get mayBeApplied(): boolean {
    return this.outcomeUnknown || this.code === 'RESULT_LOST';
  }
}

/** Returns the error itself if it is expected, otherwise an `INTERNAL` one that keeps it as its cause. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ServiceError('INTERNAL', message, { cause: error });
}
