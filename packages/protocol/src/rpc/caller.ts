import { type Bytes, type Clock, ServiceError, TransientMap, toServiceError } from '@remora/base';
import { Admission } from './admission.ts';
import { ANSWER, ASK, decodeError, decodeFrame, type Item, roughSize } from './frame.ts';
import type { FrameLink } from './link.ts';
import type { GuardedLink, LinkGuard } from './link-guard.ts';
import { Outbox } from './outbox.ts';
import { muteError, noAnswer, PendingCall, unavailable } from './pending-call.ts';
import type { CallHandle, CallOptions, Done, Method, RpcChannel, StreamHandle } from './rpc.ts';
import { Silence } from './silence.ts';
import { Sweep } from './sweep.ts';

export interface CallerLimits {
  /** Calls and streams open at once; one more is refused with RESOURCE_EXHAUSTED. */
  readonly callsMax: number;
  /** Bytes that wait to be sent; above it calls are refused with RESOURCE_EXHAUSTED. */
  readonly queueBytesMax: number;
  /** A larger request is refused with REQUEST_TOO_LARGE: its frame would end the link, and all other calls on it. */
  readonly requestBytesMax: number;
}

export const DEFAULT_CALLER_LIMITS: CallerLimits = {
  callsMax: 16_384,
  queueBytesMax: 64 << 20,
  requestBytesMax: 48 << 20,
};

/** Any answer is sufficient, also that the method is not served. */
const PING: Method<unknown, unknown> = {
  name: 'link.ping',
  callers: 'joiners',
  encodeRequest: (request) => request,
  decodeRequest: () => null,
  encodeReply: (reply) => reply,
  decodeReply: (raw) => raw,
};

/** The number of consumed messages of a stream after which the other side is informed. */
const CREDIT_BATCH = 32;

interface CallerPorts {
  readonly link: FrameLink;
  readonly clock: Clock;
  readonly limits?: CallerLimits;
  /** Makes the guard that admits the link. Absent: an open link is admitted. */
  readonly guard?: ((link: GuardedLink) => LinkGuard) | undefined;
  /** The link is open. */
  readonly onOpen?: () => void;
  /** The link is open and admitted for the first time: what was queued goes out now. */
  readonly onAdmitted?: () => void;
  /** The link is gone; all its open calls are answered after this. */
  readonly onClose?: (error: ServiceError) => void;
}

/**
 * The calling side of a link.
 *
 * C1. `done` runs exactly once per call that is not cancelled: with the reply, the server's error, UNAVAILABLE when
 *     the call never left this process, or UNKNOWN_OUTCOME when it left and no answer came (time-out, broken link).
 * C2. Nothing is sent before the link is open; until then calls wait, within the limits.
 * C3. A call that ends without an answer is cancelled at the other side.
 * C4. While anything is open, a peer that gives no sign of life is given up (silence.ts). Signs of life are frames from
 *     it, and its taking of sent data.
 * C5. A call that may be made elsewhere ends as soon as the peer gives no sign of life for a moment. The link stays: a
 *     peer that stood still for a moment comes back.
 * C6. A link with a guard is held until the guard admits it (link-guard.ts).
 */
export class LinkCaller implements RpcChannel {
  readonly #link: FrameLink;
  readonly #clock: Clock;
  readonly #limits: CallerLimits;
  readonly #ports: CallerPorts;
  readonly #outbox: Outbox;
  readonly #calls = new TransientMap<PendingCall>();
  readonly #streams = new Map<number, OpenStream>();
  readonly #methods = new Map<string, number>();
  readonly #sweep: Sweep;
  readonly #silence: Silence;
  /** One function for all calls; otherwise each call would create its own. */
  readonly #cancel = (id: number): void => {
    const call = this.#take(id);
    if (call !== undefined) this.#abandon(call);
  };
  readonly #admission: Admission;
  #opened = false;
  #nextId = 1;
  #closed: ServiceError | undefined;

  constructor(ports: CallerPorts) {
    this.#ports = ports;
    this.#link = ports.link;
    this.#clock = ports.clock;
    this.#limits = ports.limits ?? DEFAULT_CALLER_LIMITS;
    this.#outbox = new Outbox(ports.link, ports.clock, () => {});
    this.#sweep = new Sweep(ports.clock, (nowMs) => this.#expire(nowMs));
    this.#silence = this.#newSilence();
    this.#admission = new Admission({
      outbox: this.#outbox,
      link: {
        call: (method, request, options, done) => this.#call(method, request, options, done, true),
        refuse: (error) => this.close(error),
      },
      guard: ports.guard,
      onAdmitted: () => ports.onAdmitted?.(),
    });
    ports.link.start({
      onOpen: () => {
        this.#opened = true;
        this.#silence.heard();
        this.#outbox.open();
        ports.onOpen?.();
        this.#admission.opened();
      },
      onHeard: () => this.#silence.heard(),
      onFrame: (frame) => this.#onFrame(frame),
      onDrain: () => {
        this.#silence.heard();
        this.#outbox.drained();
      },
      onClose: (error) => this.#fail(error),
    });
  }

  /** Calls and streams open at the moment. */
  get outstanding(): number {
    return this.#calls.size + this.#streams.size;
  }

  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: CallOptions,
    done: Done<Reply>,
  ): CallHandle {
    return this.#call(method, request, options, done, false);
  }

  #call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: CallOptions,
    done: Done<Reply>,
    isOfGuard: boolean,
  ): CallHandle {
    const body = method.encodeRequest(request);
    const size = roughSize(body);
    const refusal = this.#refusal(size);
    if (refusal !== undefined) {
      done(refusal, undefined);
      return { cancel() {} };
    }
    const call = this.#newCall(
      method as unknown as Method<unknown, unknown>,
      options,
      done as Done<unknown>,
      isOfGuard,
    );
    this.#put(call, body, size);
    this.#silence.watch();
    return call;
  }

  openStream<Request, Message>(
    method: Method<Request, Message>,
    request: Request,
    onMessage: (message: Message) => void,
    onEnd: (error: ServiceError | undefined) => void,
  ): StreamHandle<Request> {
    const body = method.encodeRequest(request);
    const size = roughSize(body);
    const refusal = this.#refusal(size);
    if (refusal !== undefined) {
      onEnd(refusal);
      return { send() {}, cancel() {} };
    }
    const id = this.#nextId++;
    const number = this.#methodNumber(method.name);
    this.#streams.set(id, {
      onMessage: (raw) => onMessage(method.decodeReply(raw)),
      onEnd,
      consumed: 0,
    });
    this.#outbox.put([ASK.open, id, number, body], size);
    this.#silence.watch();
    return {
      send: (next) => {
        if (!this.#streams.has(id)) return;
        const raw = method.encodeRequest(next);
        if (this.#outbox.bytes <= this.#limits.queueBytesMax) {
          this.#outbox.put([ASK.message, id, raw], roughSize(raw));
          return;
        }
        this.#streams.delete(id);
        this.#outbox.put([ASK.cancel, id], 2);
        onEnd(new ServiceError('RESOURCE_EXHAUSTED', 'too much waits to be sent to this peer'));
      },
      cancel: () => {
        if (this.#streams.delete(id)) this.#outbox.put([ASK.cancel, id], 2);
      },
    };
  }

  /** Sends waiting items now: code at the end of this turn may end the process. */
  flush(): void {
    this.#outbox.flush();
  }

  /** Ends the link: calls that were sent end with UNKNOWN_OUTCOME, the others with UNAVAILABLE. */
  close(reason: ServiceError): void {
    if (this.#closed !== undefined) return;
    this.#link.close(reason);
    this.#fail(reason);
  }

  #newCall(
    method: Method<unknown, unknown>,
    options: CallOptions,
    done: Done<unknown>,
    isOfGuard: boolean,
  ): PendingCall {
    const deadlineMs = this.#clock.monotonicMs() + options.timeoutMs;
    const terms = { deadlineMs, movable: options.movable ?? false, isOfGuard, done, onCancel: this.#cancel };
    return new PendingCall(this.#nextId++, method, terms);
  }

  #put(call: PendingCall, body: unknown, size: number): void {
    const number = this.#methodNumber(call.method.name);
    this.#calls.add(call.id, call);
    const item: Item = [ASK.call, call.id, number, body];
    if (call.isOfGuard) this.#outbox.putAhead(item, size, call);
    else this.#outbox.put(item, size, call);
    this.#sweep.arm();
  }

  #refusal(requestBytes: number): ServiceError | undefined {
    if (this.#closed !== undefined) return unavailable(this.#closed);
    const { requestBytesMax } = this.#limits;
    if (requestBytes > requestBytesMax) {
      return new ServiceError(
        'REQUEST_TOO_LARGE',
        `a request of ${requestBytes} bytes; ${requestBytesMax} are sent at most`,
      );
    }
    if (this.outstanding >= this.#limits.callsMax) {
      return new ServiceError('RESOURCE_EXHAUSTED', `${this.#limits.callsMax} calls to this peer are in progress`);
    }
    if (this.#outbox.bytes > this.#limits.queueBytesMax) {
      return new ServiceError('RESOURCE_EXHAUSTED', 'too much waits to be sent to this peer');
    }
    return undefined;
  }

  #methodNumber(name: string): number {
    const known = this.#methods.get(name);
    if (known !== undefined) return known;
    const number = this.#methods.size + 1;
    this.#methods.set(name, number);
    this.#outbox.putAhead([ASK.method, number, name], name.length + 4); // Before any call of it, even one that is held.
    return number;
  }

  /** C3; a call that was not sent yet is simply never sent. */
  #abandon(call: PendingCall): void {
    if (call.sent) this.#outbox.put([ASK.cancel, call.id], 2);
    else call.canceled = true;
  }

  #expire(nowMs: number): boolean {
    this.#calls.forEach((call, id) => {
      if (call.deadlineMs > nowMs) return;
      // C1. A `done` may have ended other calls meanwhile, and even the link.
      if (!this.#calls.delete(id)) return;
      this.#abandon(call);
      call.done(noAnswer(call, 'timed out'), undefined);
    });
    return this.#calls.size > 0;
  }

  #newSilence(): Silence {
    return new Silence({
      clock: this.#clock,
      awaiting: () => this.#closed === undefined && this.outstanding > 0,
      awaitingMovable: () => this.#hasMovable(),
      isOpen: () => this.#opened,
      // Exempt from the limits: it is needed when they are reached, too.
      ask: (timeoutMs) =>
        this.#put(
          this.#newCall(PING, { timeoutMs }, () => {}, true),
          null,
          1,
        ),
      onMute: () => this.#moveOn(),
      onGone: () => this.close(new ServiceError('UNAVAILABLE', 'the peer gives no sign of life')),
    });
  }

  #hasMovable(): boolean {
    let found = false;
    this.#calls.forEach(({ movable }) => {
      found ||= movable;
    });
    return found;
  }

  /** C5. */
  #moveOn(): void {
    this.#calls.forEach((call, id) => {
      if (!call.movable || !this.#calls.delete(id)) return; // C1
      this.#abandon(call);
      call.done(muteError(call), undefined);
    });
  }

  #onFrame(frame: Bytes): void {
    if (this.#closed !== undefined) return;
    this.#silence.heard();
    let items: ReturnType<typeof decodeFrame>;
    try {
      items = decodeFrame(frame);
    } catch (error) {
      this.close(toServiceError(error));
      return;
    }
    // By index: iterators are objects, and answers come by the hundred thousand.
    for (let i = 0; i < items.length; i++) {
      const item = items[i];
      if (item !== undefined) this.#onItem(item[0], item[1], item[2]);
    }
  }

  #onItem(kind: unknown, id: number, body: unknown): void {
    switch (kind) {
      case ANSWER.reply:
        this.#take(id)?.answer(body);
        return;
      case ANSWER.error:
        this.#onError(this.#take(id), body);
        return;
      case ANSWER.message:
        this.#onMessage(id, body);
        return;
      case ANSWER.end: {
        const stream = this.#streams.get(id);
        if (!this.#streams.delete(id)) return;
        const error = body === null ? undefined : decodeErrorSafely(body);
        if (error !== undefined) this.#admission.hear(error, id, this.#nextId);
        stream?.onEnd(error);
        return;
      }
      default:
        this.close(new ServiceError('INTERNAL', 'the peer sent an unknown kind of item'));
        return;
    }
  }

  #onError(call: PendingCall | undefined, body: unknown): void {
    if (call === undefined) return;
    const error = decodeErrorSafely(body);
    // Before the caller, which may retry.
    if (!call.isOfGuard) this.#admission.hear(error, call.id, this.#nextId);
    call.done(error, undefined);
  }

  #take(id: number): PendingCall | undefined {
    const call = this.#calls.get(id);
    if (call !== undefined) this.#calls.delete(id);
    return call;
  }

  #onMessage(id: number, body: unknown): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    try {
      stream.onMessage(body);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#streams.delete(id);
      this.#outbox.put([ASK.cancel, id], 2);
      stream.onEnd(error);
      return;
    }
    if (++stream.consumed < CREDIT_BATCH) return;
    this.#outbox.put([ASK.credit, id, stream.consumed], 12);
    stream.consumed = 0;
  }

  #fail(reason: ServiceError): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#outbox.close();
    this.#admission.closed();
    const calls = this.#calls.values();
    const streams = [...this.#streams];
    // First, so that a callback that retries finds this link gone.
    this.#ports.onClose?.(reason);
    // C1. A callback may cancel other calls, which then get no callback.
    for (const call of calls) {
      if (this.#calls.delete(call.id)) call.done(noAnswer(call, 'lost its connection', reason), undefined);
    }
    for (const [id, stream] of streams) {
      if (this.#streams.delete(id)) stream.onEnd(unavailable(reason));
    }
  }
}

interface OpenStream {
  readonly onMessage: (raw: unknown) => void;
  readonly onEnd: (error: ServiceError | undefined) => void;
  consumed: number;
}

function decodeErrorSafely(raw: unknown): ServiceError {
  try {
    return decodeError(raw);
  } catch (cause) {
    return new ServiceError('UNKNOWN_OUTCOME', 'malformed error', { cause });
  }
}
