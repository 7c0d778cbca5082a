import { InvariantError, ServiceError, toServiceError } from '@remora/base';
import type { Caller } from './access.ts';
import type { Registered } from './registry.ts';
import type { Method, StreamContext, StreamSink } from './rpc.ts';

/** The most messages in flight to a peer before it has consumed any of them. */
const WINDOW = 256;
/** A handler that ignores back-pressure loses its stream here. */
const WINDOW_HARD = 4 * WINDOW;

type StreamHandler = Extract<Registered, { kind: 'stream' }>['handler'];

interface StreamPorts {
  readonly caller: Caller;
  /** False while the whole link is behind. */
  roomFor(): boolean;
  put(rawMessage: unknown): void;
  end(error: ServiceError | undefined): void;
}

/**
 * The serving end of one stream. Back-pressure counts the messages that the peer has not consumed yet, so that one slow
 * stream neither delays its link nor fills the memory of this process.
 */
export class ServedStream implements StreamContext<unknown> {
  readonly caller: Caller;
  readonly #method: Method<unknown, unknown>;
  readonly #ports: StreamPorts;
  readonly #drainHooks: (() => void)[] = [];
  #sink: StreamSink<unknown> | undefined;
  #underWay = 0;
  #waiting = false;
  #over = false;
  /** The stream ended without the handler, which is notified once it has returned. */
  #closed = false;

  constructor(method: Method<unknown, unknown>, ports: StreamPorts) {
    this.caller = ports.caller;
    this.#method = method;
    this.#ports = ports;
  }

  open(handler: StreamHandler, rawRequest: unknown): void {
    this.#guard(() => {
      this.#sink = handler(this.#method.decodeRequest(rawRequest), this);
    });
    if (this.#closed) this.#sink?.onClose();
  }

  receive(rawRequest: unknown): void {
    if (this.#over) return;
    this.#guard(() => this.#sink?.onMessage(this.#method.decodeRequest(rawRequest)));
  }

  /** The peer cancelled, or the link broke. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#close();
  }

  credit(count: number): void {
    this.#underWay = Math.max(0, this.#underWay - count);
    this.drain();
  }

  drain(): void {
    if (!this.#waiting || this.#over || !this.#room()) return;
    this.#waiting = false;
    for (const hook of this.#drainHooks) hook();
  }

  send(message: unknown): boolean {
    if (this.#over) return true;
    if (this.#underWay >= WINDOW_HARD) {
      this.#fail(new ServiceError('RESOURCE_EXHAUSTED', 'the stream is not consumed'));
      return true;
    }
    this.#underWay++;
    this.#ports.put(this.#method.encodeReply(message));
    if (this.#room()) return true;
    this.#waiting = true;
    return false;
  }

  onDrain(fn: () => void): void {
    this.#drainHooks.push(fn);
  }

  end(error?: ServiceError): void {
    if (this.#over) return;
    this.#over = true;
    this.#ports.end(error);
  }

  #room(): boolean {
    return this.#underWay < WINDOW && this.#ports.roomFor();
  }

  /** Ends the stream from inside: the handler is notified as of any other end. */
  #fail(error: ServiceError): void {
    if (this.#over) return;
    this.end(error);
    this.#close();
  }

  #close(): void {
    this.#closed = true;
    this.#sink?.onClose();
  }

  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      this.#fail(toServiceError(error));
    }
  }
}
