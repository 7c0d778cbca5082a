import { assert } from '@remora/base';
import type { CallContext, Done, Method, RpcRegistry, StreamContext, StreamSink } from './rpc.ts';

/**
 * A handler whose types were checked when it was registered; here they are dropped, and the method's codec restores
 * them.
 */
export type Registered =
  | {
      readonly kind: 'call';
      readonly method: Method<unknown, unknown>;
      readonly handler: (request: unknown, context: CallContext, done: Done<unknown>) => void;
    }
  | {
      readonly kind: 'stream';
      readonly method: Method<unknown, unknown>;
      readonly handler: (first: unknown, context: StreamContext<unknown>) => StreamSink<unknown>;
    };

/** The part of a registry that servers and the local channel use. */
export interface RpcDispatcher {
  lookup(name: string): Registered | undefined;
}

/** Registering the same name twice is a broken invariant. */
export function createRpcRegistry(): RpcRegistry & RpcDispatcher {
  const methods = new Map<string, Registered>();

  function add(entry: Registered): void {
    assert(!methods.has(entry.method.name), `method ${entry.method.name} is registered twice`);
    methods.set(entry.method.name, entry);
  }

  // The casts drop the parameter types: requests reach a handler only through its own method's decoder, or from a
  // caller that passed the same method object to the local channel.
  return {
    handle(method, handler) {
      add({ kind: 'call', method, handler } as unknown as Registered);
    },
    handleStream(method, handler) {
      add({ kind: 'stream', method, handler } as unknown as Registered);
    },
    lookup: (name) => methods.get(name),
  };
}
