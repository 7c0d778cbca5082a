import type { ServiceError, Timer } from '@remora/base';
import {
  type CallHandle,
  isFinalRefusal,
  type Method,
  pipeQuery,
  type Query,
  type ReconnectingChannel,
  type StreamHandle,
} from '@remora/protocol';
import { ANSWER_GRACE_MS } from './operation.ts';
import { isLasting, isNoAnswer } from './request-errors.ts';
import type { Requester } from './requester.ts';

export interface ResumedStreamPorts<Request, Message> {
  /** The request, each time that the stream is opened. */
  readonly request: () => Request;
  readonly onMessage: (message: Message) => void;
  /** A small query to a range that the messages come from (RS2). */
  readonly probe: () => Query;
  /** The stream is not opened again: the client is closed, or the error is lasting. */
  readonly onEnd: (error: ServiceError | undefined) => void;
}

/** RS3. */
const REFUSALS_MAX = 2;
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2_000;
const QUIET_MS = 20_000;
const PROBE_MS = 5_000;

/**
 * A stream from a gateway that is opened again, at any gateway that works, each time that it breaks.
 *
 * RS1. At most one stream is open: messages of an earlier one are ignored (`#generation`).
 * RS2. A gateway that is cut off from the ranges keeps looking for them, and sends nothing. So when nothing has arrived
 *      for QUIET_MS, the client sends the gateway a query that only a range can answer. Without an answer it opens the
 *      stream at the next gateway, as etcd clients do that require a leader.
 * RS3. When a gateway refuses the stream as UNAUTHENTICATED, only the log-in may be outdated. The connection is logged
 *      in again (log-ins.ts LI4), and the stream is opened again.
 */
export class ResumedStream<Request, Message> {
  readonly #requester: Requester;
  readonly #method: Method<Request, Message>;
  readonly #ports: ResumedStreamPorts<Request, Message>;
  #stream: StreamHandle<Request> | undefined;
  #timer: Timer | undefined;
  #quietTimer: Timer | undefined;
  #probe: CallHandle | undefined;
  /** When a message arrived last, or the gateway was last found to reach the ranges. */
  #heardMs = 0;
  #generation = 0;
  #failures = 0;
  /** How often it was refused as UNAUTHENTICATED since the last message. */
  #refusals = 0;
  #over = false;

  constructor(requester: Requester, method: Method<Request, Message>, ports: ResumedStreamPorts<Request, Message>) {
    this.#requester = requester;
    this.#method = method;
    this.#ports = ports;
  }

  /** Does nothing while the stream is open, or about to be opened. */
  open(): void {
    if (this.#over || this.#stream !== undefined || this.#timer !== undefined) return;
    const generation = ++this.#generation;
    const { channel } = this.#requester.gateways;
    const current = (): boolean => generation === this.#generation && !this.#over;
    const stream = channel.openStream(
      this.#method,
      this.#ports.request(),
      (message) => {
        if (!current()) return;
        this.#failures = 0;
        this.#refusals = 0;
        this.#heardMs = this.#requester.ports.clock.monotonicMs();
        this.#ports.onMessage(message);
      },
      (error) => {
        if (current()) this.#broke(channel, error);
      },
    );
    if (!current()) return stream.cancel();
    this.#stream = stream;
    this.#heardMs = this.#requester.ports.clock.monotonicMs();
    this.#listen(channel);
  }

  /** Closes the stream until the next `open`. */
  pause(): void {
    this.#stream?.cancel();
    this.#forget();
  }

  close(): void {
    this.#over = true;
    this.pause();
    this.#timer?.cancel();
  }

  #broke(channel: ReconnectingChannel, error: ServiceError | undefined): void {
    this.#forget();
    this.#requester.gateways.failed(channel);
    const { closed } = this.#requester;
    const lasting = error !== undefined && isLasting(error) && !this.#awaitsLogIn(error);
    if (lasting || closed) {
      this.close();
      return this.#ports.onEnd(closed ? undefined : error);
    }
    this.#openLater();
  }

  /** RS3. */
  #awaitsLogIn(error: ServiceError): boolean {
    if (error.code !== 'UNAUTHENTICATED' || isFinalRefusal(error) || !this.#requester.logsIn) return false;
    return this.#refusals++ < REFUSALS_MAX;
  }

  #forget(): void {
    this.#generation++;
    this.#stream = undefined;
    this.#quietTimer?.cancel();
    this.#probe?.cancel();
  }

  /** RS2. */
  #listen(channel: ReconnectingChannel): void {
    const { clock } = this.#requester.ports;
    const leftMs = this.#heardMs + QUIET_MS - clock.monotonicMs();
    this.#quietTimer = clock.setTimer(Math.max(1, leftMs), () => {
      if (clock.monotonicMs() < this.#heardMs + QUIET_MS) this.#listen(channel);
      else this.#ask(channel);
    });
  }

  /** RS2. */
  #ask(channel: ReconnectingChannel): void {
    const { gateways, ports } = this.#requester;
    const generation = this.#generation;
    const askedMs = ports.clock.monotonicMs();
    const options = { timeoutMs: PROBE_MS + ANSWER_GRACE_MS };
    this.#probe = channel.call(pipeQuery, { query: this.#ports.probe(), timeoutMs: PROBE_MS }, options, (error) => {
      if (generation !== this.#generation) return;
      const isReached = error === undefined || !isNoAnswer(error) || this.#heardMs > askedMs;
      if (!isReached) gateways.failed(channel, true);
      if (isReached || gateways.channel === channel) {
        this.#heardMs = ports.clock.monotonicMs();
        return this.#listen(channel);
      }
      this.pause();
      this.#openLater();
    });
  }

  #openLater(): void {
    const { clock, random } = this.#requester.ports;
    const ceilingMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(this.#failures++, 6));
    this.#timer = clock.setTimer(ceilingMs / 2 + random.int(Math.ceil(ceilingMs / 2)), () => {
      this.#timer = undefined;
      this.open();
    });
  }
}
