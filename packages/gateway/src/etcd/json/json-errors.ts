import type { ServiceError } from '@remora/base';
import type { ApiAnswer, StreamError } from '../../http/api-types.ts';
import type { HttpDetails } from '../../http/statuses.ts';
import { type EtcdStatus, etcdStatus } from '../errors.ts';

const INVALID_ARGUMENT = 3;

/** HTTP statuses by gRPC status, as grpc-gateway has them (`runtime.HTTPStatusFromCode`, v2). */
const HTTP_STATUSES: Readonly<Record<number, readonly [number, string]>> = {
  1: [499, 'Client Closed Request'],
  2: [500, 'Internal Server Error'],
  3: [400, 'Bad Request'],
  4: [504, 'Gateway Timeout'],
  5: [404, 'Not Found'],
  6: [409, 'Conflict'],
  7: [403, 'Forbidden'],
  8: [429, 'Too Many Requests'],
  9: [400, 'Bad Request'],
  10: [409, 'Conflict'],
  11: [400, 'Bad Request'],
  12: [501, 'Not Implemented'],
  13: [500, 'Internal Server Error'],
  14: [503, 'Service Unavailable'],
  15: [500, 'Internal Server Error'],
  16: [401, 'Unauthorized'],
};
const UNKNOWN_STATUS = [500, 'Internal Server Error'] as const;

/** An error in the form of etcd's gateway: `error` is for clients of etcd up to 3.5, `message` for later ones. */
export function jsonError(error: ServiceError, statusOf: (error: ServiceError) => EtcdStatus = etcdStatus): ApiAnswer {
  const { status: code, message } = statusOf(error);
  const own = error.details as Partial<HttpDetails & { readonly retryAfterMs: number }> | undefined;
  const after = own?.retryAfterMs;
  return {
    status: own?.httpStatus ?? httpOf(code)[0],
    headers: {
      ...JSON_HEADERS,
      ...own?.headers,
      ...(after === undefined ? {} : { 'retry-after': String(Math.ceil(after / 1000)) }),
    },
    body: { error: message, code, message },
    ...(code === INVALID_ARGUMENT ? {} : { wellFormed: true }),
  };
}

/** The end of a stream. A line has all fields that versions of grpc-gateway write. */
export function streamError(error: ServiceError, statusOf: (error: ServiceError) => EtcdStatus): StreamError {
  const { status: code, message } = statusOf(error);
  const [http_code, http_status] = httpOf(code);
  return {
    answer: jsonError(error, statusOf),
    line: { error: { grpc_code: code, code, http_code, http_status, message } },
  };
}

/** A request that no method takes. */
export function jsonRefusal(code: number, message: string, status: number, headers = {}): ApiAnswer {
  return { status, headers: { ...JSON_HEADERS, ...headers }, body: { error: message, code, message } };
}

function httpOf(code: number): readonly [number, string] {
  return HTTP_STATUSES[code] ?? UNKNOWN_STATUS;
}

/** What grpc-gateway sends with an answer. */
export const JSON_HEADERS = { 'content-type': 'application/json' } as const;
