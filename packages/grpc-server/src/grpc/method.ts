/** A method as ts-proto generates it for `grpc-js`. */
export interface MethodDefinition {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly requestDeserialize: (bytes: Buffer) => unknown;
  readonly responseSerialize: (message: never) => Uint8Array;
}

export type ServiceDefinition = Readonly<Record<string, MethodDefinition>>;

/** A method that is served. */
export interface ServedMethod {
  readonly path: string;
  readonly isRequestStream: boolean;
  readonly isUnary: boolean;
  readonly deserialize: (bytes: Buffer) => unknown;
  readonly serialize: (message: unknown) => Uint8Array;
  /** Serves a `UnaryCall` or a `StreamCall`. */
  readonly run: (call: unknown) => void;
}
