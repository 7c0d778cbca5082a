import { type ServiceError as GrpcError, Metadata } from '@grpc/grpc-js';
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

export function toGrpcError(error: ServiceError, statusOf: StatusOf): GrpcError {
  const { status, message } = statusOf(error);
  const metadata = new Metadata();
  metadata.set(CODE_TRAILER, error.code);
  if (message !== error.message) metadata.set(MESSAGE_TRAILER, headerText(error.message));
  const retryAfterMs = error.details?.retryAfterMs;
  if (typeof retryAfterMs === 'number') metadata.set(PUSHBACK_TRAILER, String(Math.ceil(retryAfterMs)));
  return Object.assign(new Error(message), { code: status, details: shortened(message), metadata });
}

/** Going through bytes replaces half surrogates, also one that is made here. */
function shortened(text: string): string {
  return Buffer.from(text.length <= DETAILS_MAX ? text : `${text.slice(0, DETAILS_MAX - 1)}…`).toString();
}

/** Trailers are ASCII. Going through bytes replaces half surrogates, which have no encoding. */
function headerText(text: string): string {
  return encodeURI(Buffer.from(text.slice(0, MESSAGE_MAX)).toString());
}
