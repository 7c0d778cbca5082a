import type { ServiceError } from '@remora/base';

/** How a service shows errors: status and message for a `ServiceError`. */
export type StatusOf = (error: ServiceError) => { readonly status: number; readonly message: string };

/** Trailer with the code of Remora's error table; the gRPC status is coarser. */
const CODE_TRAILER = 'remora-code';
/** Trailer with Remora's own message where the status carries another text; percent-encoded UTF-8. */
const MESSAGE_TRAILER = 'remora-message';
/** gRPC's trailer for the pause before a retry, used by clients with a retry policy (gRFC A6). */
const PUSHBACK_TRAILER = 'grpc-retry-pushback-ms';
const MESSAGE_MAX = 512;
/**
 * Bound for the message of a status. It is sent percent-encoded in a trailer, and gRPC drops a message that is too
 * large for a header. A message may quote a part of the request, which may be long.
 */
const DETAILS_MAX = 4_096;

/** What a call ends with. */
export interface GrpcStatus {
  readonly status: number;
  readonly message: string;
  readonly trailers: Readonly<Record<string, string>>;
}

export function grpcStatus(error: ServiceError, statusOf: StatusOf): GrpcStatus {
  const { status, message } = statusOf(error);
  const trailers: Record<string, string> = { [CODE_TRAILER]: error.code };
  if (message !== error.message) trailers[MESSAGE_TRAILER] = headerText(error.message);
  const retryAfterMs = error.details?.retryAfterMs;
  if (typeof retryAfterMs === 'number') trailers[PUSHBACK_TRAILER] = String(Math.ceil(retryAfterMs));
  return { status, message: shortened(message), trailers };
}

/** Going through bytes replaces half surrogates, also one that is made here. */
function shortened(text: string): string {
  return Buffer.from(text.length <= DETAILS_MAX ? text : `${text.slice(0, DETAILS_MAX - 1)}…`).toString();
}

/** Trailers are ASCII. Going through bytes replaces half surrogates, which have no encoding. */
function headerText(text: string): string {
  return encodeURI(Buffer.from(text.slice(0, MESSAGE_MAX)).toString());
}
