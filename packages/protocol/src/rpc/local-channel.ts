import { type Clock, ServiceError, TransientMap } from '@remora/base';
import { LOCAL_CALLER } from './access.ts';
import type { RpcDispatcher } from './registry.ts';
import type { CallContext, CallHandle, CallOptions, Done, Method, RpcChannel, StreamHandle } from './rpc.ts';
import { Sweep } from './sweep.ts';

/**
 * Calls inside one process: the handler runs at once, on the caller's stack, and its `done` is the caller's. There is
 * no codec and no queue, so both `done` and a stream's messages may come before `call` or `openStream` has returned.
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
        if (call.deadlineMs <= nowMs) call.timeOut();
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
    const call = new LocalCall(this.#open, this.#nextId++, {
      method: method.name,
      deadlineMs: this.#clock.monotonicMs() + options.timeoutMs,
      done: done as Done<unknown>,
    });
    entry.handler(request, call, (error, reply) => call.answer(error, reply));
    if (!call.over) this.#sweep.arm();
    return call;
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
      caller: LOCAL_CALLER,
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

/** One call in progress, as its handler and its caller see it. */
class LocalCall implements CallContext, CallHandle {
  readonly caller = LOCAL_CALLER;
  readonly deadlineMs: number;
  readonly #open: TransientMap<LocalCall>;
  readonly #id: number;
  readonly #method: string;
  readonly #done: Done<unknown>;
  #hooks: (() => void)[] | undefined;
  #over = false;
  #abandoned = false;

  constructor(
    open: TransientMap<LocalCall>,
    id: number,
    call: { readonly method: string; readonly deadlineMs: number; readonly done: Done<unknown> },
  ) {
    this.#open = open;
    this.#id = id;
    this.#method = call.method;
    this.deadlineMs = call.deadlineMs;
    this.#done = call.done;
    open.add(id, this);
  }

  get over(): boolean {
    return this.#over;
  }

  onCancel(fn: () => void): void {
    if (this.#abandoned) return fn();
    if (this.#over) return;
    if (this.#hooks === undefined) this.#hooks = [fn];
    else this.#hooks.push(fn);
  }

  answer(error: ServiceError | undefined, reply: unknown): void {
    if (this.#finish()) this.#done(error, reply);
  }

  timeOut(): void {
    if (this.#abandon()) this.#done(new ServiceError('UNKNOWN_OUTCOME', `${this.#method} timed out`), undefined);
  }

  cancel(): void {
    this.#abandon();
  }

  #abandon(): boolean {
    if (!this.#finish()) return false;
    this.#abandoned = true;
    for (const hook of this.#hooks ?? []) hook();
    return true;
  }

  #finish(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#open.delete(this.#id);
    return true;
  }
}

function notServed(name: string): ServiceError {
  return new ServiceError('UNIMPLEMENTED', `${name} is not served here`);
}
