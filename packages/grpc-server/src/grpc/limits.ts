import { HTTP2_LIMIT_TABLE, type LimitDeclaration } from '../http2/limits.ts';

/** The limits of HTTP/2, and those of gRPC. */
export const GRPC_LIMIT_TABLE = {
  ...HTTP2_LIMIT_TABLE,
  messageBytesMax: {
    ...{ value: 4 << 20, unit: 'bytes', what: 'one request message, inflated' },
    beyond: 'The call gets RESOURCE_EXHAUSTED.',
  },
  inflatedBytesPerSecondMax: {
    ...{
      value: 256 << 20,
      unit: 'bytes',
      what: 'a second to which compressed messages of all connections are inflated',
    },
    beyond: 'The call gets RESOURCE_EXHAUSTED.',
  },
} as const satisfies Readonly<Record<string, LimitDeclaration>>;

export type GrpcLimits = { readonly [Name in keyof typeof GRPC_LIMIT_TABLE]: number };

export const GRPC_LIMITS = Object.fromEntries(
  Object.entries(GRPC_LIMIT_TABLE).map(([name, { value }]) => [name, value]),
) as GrpcLimits;
