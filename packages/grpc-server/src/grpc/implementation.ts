import type { ServiceDefinition } from './method.ts';
import type { StreamCall } from './stream-call.ts';
import type { UnaryCall } from './unary-call.ts';

/** Answers one request: with `call.respond` or `call.fail`, now or later. */
export type UnaryMethod<Request, Response> = (call: UnaryCall<Request, Response>) => void;

/** Serves a call with a stream of requests, of responses, or of both. It sets the handlers of the call at once. */
export type StreamMethod<Request, Response> = (call: StreamCall<Request, Response>) => void;

type MethodOf<Definition> = Definition extends {
  readonly requestStream: infer RequestStream;
  readonly responseStream: infer ResponseStream;
  readonly requestDeserialize: (bytes: Buffer) => infer Request;
  readonly responseSerialize: (message: infer Response) => Uint8Array;
}
  ? [RequestStream, ResponseStream] extends [false, false]
    ? UnaryMethod<Request, Response>
    : StreamMethod<Request, Response>
  : never;

/** What implements a service: a method for each name of its definition. */
export type Implementation<Definition extends ServiceDefinition> = {
  readonly [Name in keyof Definition]: MethodOf<Definition[Name]>;
};
