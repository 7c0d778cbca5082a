import { HTTP2_LIMITS, type Http2Limits } from '../http2/limits.ts';

/** The limits of HTTP/2, and those of gRPC. */
export interface GrpcLimits extends Http2Limits {
  /** Bytes of one request message, inflated. The call gets RESOURCE_EXHAUSTED. */
  readonly messageBytesMax: number;
  /** Bytes a second to which messages of all connections are inflated. Further calls get RESOURCE_EXHAUSTED. */
  readonly inflatedBytesPerSecondMax: number;
}

export const GRPC_LIMITS: GrpcLimits = {
  ...HTTP2_LIMITS,
  messageBytesMax: 4 << 20,
  inflatedBytesPerSecondMax: 256 << 20,
};
