import { type Bytes, type Clock, InvariantError, ServiceError, TransientMap, toServiceError } from '@remora/base';
import { asCount, asText } from '../internal/codec/check.ts';
import { accessRefusal, type Caller, mayCall } from './access.ts';
import { ANSWER, ASK, type DecodedItem, decodeMeasuredFrame, encodeError, roughSize } from './frame.ts';
import type { FrameLink } from './link.ts';
import { Outbox } from './outbox.ts';
import type { Registered, RpcDispatcher } from './registry.ts';
import { ServedStream } from './served-stream.ts';

export interface ServerLimits {
  /** Calls and streams of one link that are open at once; one more is refused with RESOURCE_EXHAUSTED. */
  readonly callsMax: number;
  /** Bytes of answers that wait to be sent; above it calls are refused, and at twice as much the link is closed. */
  readonly queueBytesMax: number;
  /** Bytes of requests of one link in progress; above it calls are refused with RESOURCE_EXHAUSTED. */
  readonly heldBytesMax: number;
  /** A larger answer is replaced by a RESOURCE_EXHAUSTED error, or by RESULT_LOST if it describes a change. */
  readonly replyBytesMax: number;
}

export const DEFAULT_SERVER_LIMITS: ServerLimits = {
  callsMax: 16_384,
  queueBytesMax: 64 << 20,
  heldBytesMax: 256 << 20,
  replyBytesMax: 48 << 20,
};

const JOINER_CALLS_MAX = 16;
const JOINER_QUEUE_BYTES_MAX = 256 * 1024;
const JOINER_HELD_BYTES_MAX = 64 * 1024;

/**
 * A joiner makes one small call at a time, and anyone may open any number of links as one. One answer may be as large
 * as those for others: the view of the cluster.
 */
function joinerLimits(limits: ServerLimits): ServerLimits {
  return {
    callsMax: Math.min(limits.callsMax, JOINER_CALLS_MAX),
    queueBytesMax: Math.min(limits.queueBytesMax, JOINER_QUEUE_BYTES_MAX),
    heldBytesMax: Math.min(limits.heldBytesMax, JOINER_HELD_BYTES_MAX),
    replyBytesMax: limits.replyBytesMax,
  };
}

/** The limit for the requests of all links together. */
export class HeldBytes {
  readonly #max: number;
  #bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns whether there was room. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#max) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** The most names that a peer may bind on one link. */
const METHODS_MAX = 256;
/** Names of unknown methods are kept, too. */
const METHOD_NAME_LENGTH_MAX = 128;

export interface ServeOptions {
  readonly link: FrameLink;
  readonly registry: RpcDispatcher;
  readonly clock: Clock;
  readonly caller: Caller;
  readonly limits?: ServerLimits;
  /** Shared with other links. */
  readonly held?: HeldBytes;
  /**
   * Returns the caller's present identity, or why it is refused. Called for each frame, because a node may become
   * known, be removed, or be known with another incarnation while its links exist. So it must be cheap.
   */
  readonly identify?: () => Caller | ServiceError;
  /** Called for each call or stream that is refused because too much is in progress. */
  readonly onBusy?: () => void;
  /** Called for each call that is refused as malformed, before anything is done. */
  readonly onMalformed?: () => void;
  readonly onClose?: (reason: ServiceError) => void;
}

export interface ServedLink {
  /** Calls and streams open at the moment. */
  readonly outstanding: number;
  close(reason: ServiceError): void;
}

/** Answers the calls that arrive over `link` with the handlers of `registry`, until the link ends. */
export function serveLink(options: ServeOptions): ServedLink {
  return new LinkServer(options);
}

class LinkServer implements ServedLink {
  readonly #options: ServeOptions;
  #limits: ServerLimits;
  readonly #outbox: Outbox;
  readonly #calls = new TransientMap<ServedCall>();
  readonly #streams = new Map<number, ServedStream>();
  readonly #methods = new Map<number, Registered | string>();
  readonly #held: HeldBytes;
  #caller: Caller;
  #closed = false;

  constructor(options: ServeOptions) {
    this.#options = options;
    this.#caller = options.caller;
    const limits = options.limits ?? DEFAULT_SERVER_LIMITS;
    this.#limits = options.caller.kind === 'joiner' ? joinerLimits(limits) : limits;
    this.#held = new HeldBytes(limits.heldBytesMax);
    this.#outbox = new Outbox(options.link, options.clock, () => this.#drainStreams());
    options.link.start({
      onOpen: () => this.#outbox.open(),
      onFrame: (frame) => this.#onFrame(frame),
      onDrain: () => this.#outbox.drained(),
      onClose: (error) => this.#end(error),
    });
  }

  get outstanding(): number {
    return this.#calls.size + this.#streams.size;
  }

  close(reason: ServiceError): void {
    if (this.#closed) return;
    this.#options.link.close(reason);
    this.#end(reason);
  }

  #onFrame(frame: Bytes): void {
    if (this.#closed || !this.#identifyAgain()) return;
    try {
      const { items, sizes } = decodeMeasuredFrame(frame);
      // By index: iterators are objects, and items come by the hundred thousand.
      for (let i = 0; i < items.length; i++) {
        const item = items[i];
        if (item === undefined || this.#closed) return;
        this.#onItem(item, sizes[i] ?? 0);
      }
    } catch (error) {
      // Handlers' errors are caught where they are called: an error here means a malformed frame.
      if (!(error instanceof ServiceError)) throw error;
      this.#options.onMalformed?.();
      this.close(error);
    }
  }

  #onItem(item: DecodedItem, bytes: number): void {
    const id = item[1];
    const a = item[2];
    switch (item[0]) {
      case ASK.call:
        this.#onCall(item, bytes);
        return;
      case ASK.cancel:
        this.#onCancel(id);
        return;
      case ASK.message:
        this.#streams.get(id)?.receive(a);
        return;
      case ASK.credit:
        this.#streams.get(id)?.credit(asCount(a, 'credit'));
        return;
      case ASK.open:
        this.#onOpen(id, a, item[3]);
        return;
      case ASK.method:
        this.#onMethod(id, asText(a, 'method name'));
        return;
      default:
        throw new ServiceError('INVALID_ARGUMENT', 'unknown kind of frame item');
    }
  }

  #onMethod(number: number, name: string): void {
    if (name.length > METHOD_NAME_LENGTH_MAX) throw new ServiceError('INVALID_ARGUMENT', 'a method name is too long');
    if (this.#methods.size >= METHODS_MAX) throw new ServiceError('RESOURCE_EXHAUSTED', 'too many method names');
    const entry = this.#lookup(name);
    this.#methods.set(number, entry instanceof ServiceError ? name : entry);
  }

  /**
   * Returns the handler of the method for this caller (A2). A refusal may be temporary: both answers change while the
   * link exists.
   */
  #lookup(name: string): Registered | ServiceError {
    const entry = this.#options.registry.lookup(name);
    if (entry === undefined) return new ServiceError('UNIMPLEMENTED', `${name} is not served here`);
    return mayCall(this.#caller, entry.method.callers) ? entry : accessRefusal(this.#caller, name);
  }

  /**
   * A4. Returns false after it closed the link, because the caller is no longer welcome. It runs once per frame, not
   * per call: nothing about nodes changes while a frame is worked on.
   */
  #identifyAgain(): boolean {
    const now = this.#options.identify?.() ?? this.#caller;
    if (now instanceof ServiceError) {
      this.close(now);
      return false;
    }
    if (now.kind === this.#caller.kind) return true;
    if (this.#caller.kind === 'node') {
      this.close(
        new ServiceError('UNAVAILABLE', `node ${this.#caller.nodeId} is no longer a node of the cluster here`),
      );
      return false;
    }
    this.#caller = now;
    this.#limits = this.#options.limits ?? DEFAULT_SERVER_LIMITS;
    return true;
  }

  /** Returns the handler to call, or the refusal. */
  #admit(id: number, rawNumber: unknown): Registered | ServiceError {
    if (this.#calls.has(id) || this.#streams.has(id)) {
      throw new ServiceError('INVALID_ARGUMENT', 'a call id is used twice');
    }
    if (this.outstanding >= this.#limits.callsMax) {
      return this.#busy(`${this.#limits.callsMax} calls of this connection are in progress`);
    }
    if (this.#outbox.bytes > this.#limits.queueBytesMax) return this.#busy('the connection does not take its answers');
    const entry = this.#methods.get(asCount(rawNumber, 'method number'));
    if (entry === undefined) throw new ServiceError('INVALID_ARGUMENT', 'a method number was never bound');
    if (typeof entry !== 'string') return entry;
    // A method that was not served when it was named may be by now: a node can become a master while its links exist.
    return this.#lookup(entry);
  }

  #busy(message: string): ServiceError {
    this.#options.onBusy?.();
    return new ServiceError('RESOURCE_EXHAUSTED', message);
  }

  #onCall(item: DecodedItem, bytes: number): void {
    const id = item[1];
    const entry = this.#admit(id, item[2]);
    if (entry instanceof ServiceError) {
      this.#putError(id, entry);
      return;
    }
    if (entry.kind !== 'call') {
      this.#putError(id, wrongKind(entry.method.name));
      return;
    }
    if (!this.#hold(bytes)) {
      this.#putError(id, this.#busy('the requests in progress hold too many bytes'));
      return;
    }
    const call = new ServedCall(this.#caller, bytes);
    this.#calls.add(id, call);
    const { method } = entry;
    let changes = false;
    const done = (error: ServiceError | undefined, reply: unknown): void => {
      if (call.over) return;
      call.over = true;
      this.#calls.delete(id);
      this.#letGo(call.bytes);
      if (error !== undefined) this.#putError(id, error);
      else this.#answer(id, reply, method, changes);
    };
    try {
      const request = method.decodeRequest(item[3]);
      changes = method.changes?.(request) === true;
      entry.handler(request, call, done);
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      const refusal = toServiceError(error);
      if (refusal.code !== 'INTERNAL') this.#options.onMalformed?.();
      done(refusal, undefined);
    }
  }

  #onOpen(id: number, rawNumber: unknown, rawRequest: unknown): void {
    const entry = this.#admit(id, rawNumber);
    if (entry instanceof ServiceError) {
      this.#putEnd(id, entry);
      return;
    }
    if (entry.kind !== 'stream') {
      this.#putEnd(id, wrongKind(entry.method.name));
      return;
    }
    const { method, handler } = entry;
    const stream = new ServedStream(method, {
      caller: this.#caller,
      roomFor: () => this.#outbox.hasRoom(this.#limits.queueBytesMax),
      put: (raw) => this.#put([ANSWER.message, id, raw], roughSize(raw)),
      end: (error) => {
        if (this.#streams.delete(id)) this.#putEnd(id, error);
      },
    });
    this.#streams.set(id, stream);
    stream.open(handler, rawRequest);
  }

  #onCancel(id: number): void {
    const call = this.#calls.get(id);
    if (call !== undefined) {
      this.#calls.delete(id);
      this.#letGo(call.bytes);
      call.cancel();
      return;
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    this.#streams.delete(id);
    stream.close();
  }

  #hold(bytes: number): boolean {
    if (bytes === 0) return true;
    if (this.#held.bytes + bytes > this.#limits.heldBytesMax || !this.#held.take(bytes)) return false;
    if (this.#options.held?.take(bytes) ?? true) return true;
    this.#held.give(bytes);
    return false;
  }

  #letGo(bytes: number): void {
    if (bytes === 0) return;
    this.#held.give(bytes);
    this.#options.held?.give(bytes);
  }

  /** A caller is answered also when its answer has a form that cannot be sent, which is a fault of this program. */
  #answer(id: number, reply: unknown, method: Registered['method'], changes: boolean): void {
    let raw: unknown;
    try {
      raw = method.encodeReply(reply);
    } catch (fault) {
      this.#putError(id, cannotBeSent(changes));
      throw fault;
    }
    const size = roughSize(raw);
    if (size > this.#limits.replyBytesMax) this.#putError(id, tooLarge(changes));
    else this.#put([ANSWER.reply, id, raw], size);
  }

  #putError(id: number, error: ServiceError): void {
    const raw = encodeError(error);
    this.#put([ANSWER.error, id, raw], roughSize(raw));
  }

  #putEnd(id: number, error: ServiceError | undefined): void {
    const raw = error === undefined ? null : encodeError(error);
    this.#put([ANSWER.end, id, raw], roughSize(raw));
  }

  /** Answers are never dropped: a peer that calls without reading loses its link. */
  #put(item: readonly unknown[], size: number): void {
    if (this.#closed) return;
    this.#outbox.put(item, size);
    if (this.#outbox.bytes > 2 * this.#limits.queueBytesMax + this.#limits.replyBytesMax) {
      this.close(new ServiceError('RESOURCE_EXHAUSTED', 'the connection does not take its answers'));
    }
  }

  #drainStreams(): void {
    for (const stream of [...this.#streams.values()]) stream.drain();
  }

  #end(reason: ServiceError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#outbox.close();
    const calls = this.#calls.values();
    const streams = [...this.#streams.values()];
    this.#calls.clear();
    this.#streams.clear();
    // All calls are over before any handler learns of it: a handler that answers others in response does not release
    // anything twice.
    for (const call of calls) {
      call.over = true;
      this.#letGo(call.bytes);
    }
    for (const call of calls) call.cancel();
    for (const stream of streams) stream.close();
    this.#options.onClose?.(reason);
  }
}

class ServedCall {
  readonly caller: Caller;
  /** The bytes of its request. */
  readonly bytes: number;
  over = false;
  #canceled = false;
  #hooks: (() => void)[] | undefined;

  constructor(caller: Caller, bytes: number) {
    this.caller = caller;
    this.bytes = bytes;
  }

  onCancel(fn: () => void): void {
    if (this.#canceled) return fn();
    if (this.over) return;
    // Created with its one hook: an array that grows makes room for more than a dozen.
    if (this.#hooks === undefined) this.#hooks = [fn];
    else this.#hooks.push(fn);
  }

  cancel(): void {
    this.over = true;
    this.#canceled = true;
    for (const hook of this.#hooks ?? []) hook();
  }
}

/** A refused caller assumes that nothing was changed, and retries. */
function tooLarge(changes: boolean): ServiceError {
  if (!changes) return new ServiceError('RESOURCE_EXHAUSTED', 'the answer is too large: ask for less at once');
  return new ServiceError('RESULT_LOST', 'the request was applied, but the answer is too large; do not repeat it');
}

function cannotBeSent(changes: boolean): ServiceError {
  if (!changes) return new ServiceError('INTERNAL', 'the answer cannot be sent: its form is unknown');
  return new ServiceError('RESULT_LOST', 'the request was applied, but the answer cannot be sent; do not repeat it');
}

function wrongKind(name: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `${name} is called the wrong way (call or stream)`);
}
