/**
 * Methods whose requests and answers are declared. Both are *open*: an older peer skips fields that it does not know
 * (schema/codec.ts SC2), so a release may add one.
 *
 * DM1. No field that a reader may skip restricts a request: a request for less, or with a condition, is a new variant
 *      or a new method, which an older peer refuses.
 */
import { openCodec } from '../schema/codec.ts';
import type { AnyKind, Kind } from '../schema/shape.ts';
import type { Method } from './rpc.ts';

/** The declaration of a method. A stream has `stream`: its answers are messages. */
export interface MethodDeclaration<Request, Reply> extends Pick<Method<Request, Reply>, 'callers' | 'changes'> {
  readonly request: Kind<Request>;
  readonly reply: Kind<Reply>;
  readonly stream?: boolean;
  /**
   * Converts an encoded message before it is put into a frame. Default: no conversion; the frame's packer writes it.
   */
  readonly pack?: (body: unknown) => unknown;
  /** For the documentation. */
  readonly meaning: string;
}

export interface DeclaredMethod<Request, Reply> extends Method<Request, Reply> {
  readonly declared: {
    readonly request: AnyKind;
    readonly reply: AnyKind;
    readonly stream: boolean;
    readonly meaning: string;
  };
}

export function method<Request, Reply>(
  name: string,
  { callers, changes, request, reply, stream = false, pack, meaning }: MethodDeclaration<Request, Reply>,
): DeclaredMethod<Request, Reply> {
  const requests = openCodec(request);
  const replies = openCodec(reply);
  return {
    name,
    callers,
    encodeRequest: packing(requests.encode, pack),
    decodeRequest: requests.decode,
    encodeReply: packing(replies.encode, pack),
    decodeReply: replies.decode,
    ...(changes === undefined ? {} : { changes }),
    declared: { request, reply, stream, meaning },
  };
}

function packing<T>(encode: (value: T) => unknown, pack?: (body: unknown) => unknown): (value: T) => unknown {
  return pack === undefined ? encode : (value) => pack(encode(value));
}
