import { type Clock, ServiceError, TransientMap } from '@remora/base';
import type { RpcDispatcher } from './registry.ts';
import type { CallContext, CallHandle, CallOptions, Done, Method, RpcChannel, StreamHandle } from './rpc.ts';
import { Sweep } from './sweep.ts';

interface LocalCall {
  readonly deadlineMs: number;
  readonly timedOut: () => void;
}

/**
 * Calls inside one process: the handler runs at once, on the caller's stack, and its `done` is the caller's. No codec
 * and no queue; so both `done` and a stream's messages may come before `call` or `openStream` has returned.
 */
export function createLocalChannel(ports: { readonly registry: RpcDispatcher; readonly clock: Clock }): RpcChannel {
  return new LocalChannel(ports.registry, ports.clock);
}

class LocalChannel implements RpcChannel {
  readonly #registry: RpcDispatcher;
  readonly #clock: Clock;
  readonly #open = new TransientMap<LocalCall>();
  #nextId = 1;
  readonly #sweep: Sweep;

  constructor(registry: RpcDispatcher, clock: Clock) {
    this.#registry = registry;
    this.#clock = clock;
    this.#sweep = new Sweep(clock, (nowMs) => {
      this.#open.forEach((call) => {
        if (call.deadlineMs <= nowMs) call.timedOut();
      });
      return this.#open.size > 0;
    });
  }

  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: CallOptions,
    done: Done<Reply>,
  ): CallHandle {
    const entry = this.#registry.lookup(method.name);
    if (entry?.kind !== 'call') {
      done(notServed(method.name), undefined);
      return { cancel() {} };
    }
    const { handler } = entry;
    const id = this.#nextId++;
    let over = false;
    const cancelHooks: (() => void)[] = [];
    const finish = (): boolean => {
      if (over) return false;
      over = true;
      this.#open.delete(id);
      return true;
    };
    const abandon = (): boolean => {
      if (!finish()) return false;
      for (const hook of cancelHooks) hook();
      return true;
    };
    const call: LocalCall = {
      deadlineMs: this.#clock.monotonicMs() + options.timeoutMs,
      timedOut: () => {
        if (abandon()) done(new ServiceError('UNKNOWN_OUTCOME', `${method.name} timed out`), undefined);
      },
    };
    const context: CallContext = {
      peer: 0,
      onCancel(fn) {
        if (!over) cancelHooks.push(fn);
      },
    };
    this.#open.add(id, call);
    handler(request, context, (error, reply) => {
      if (finish()) done(error, reply as Reply | undefined);
    });
    if (!over) this.#sweep.arm();
    return { cancel: abandon };
  }

  openStream<Request, Message>(
    method: Method<Request, Message>,
    request: Request,
    onMessage: (message: Message) => void,
    onEnd: (error: ServiceError | undefined) => void,
  ): StreamHandle<Request> {
    const entry = this.#registry.lookup(method.name);
    if (entry?.kind !== 'stream') {
      onEnd(notServed(method.name));
      return { send() {}, cancel() {} };
    }
    let over = false;
    const sink = entry.handler(request, {
      peer: 0,
      // The receiver has consumed the message when it returns, so there is never anything to wait for.
      send(message) {
        if (!over) onMessage(message as Message);
        return true;
      },
      onDrain() {},
      end(error) {
        if (over) return;
        over = true;
        onEnd(error);
      },
    });
    return {
      send(next) {
        if (!over) sink.onMessage(next);
      },
      cancel() {
        if (over) return;
        over = true;
        sink.onClose();
      },
    };
  }
}

function notServed(name: string): ServiceError {
  return new ServiceError('UNIMPLEMENTED', `${name} is not served here`);
}
