import type { ServiceError, Timer } from '@remora/base';
import type { Method, ReconnectingChannel, StreamHandle } from '@remora/protocol';
import type { Requester } from './requester.ts';

export interface ResumedStreamPorts<Request, Message> {
  /** What to ask for, each time that it is opened. */
  readonly request: () => Request;
  readonly onMessage: (message: Message) => void;
  /** It is opened no more: closed with the client, or refused for good. */
  readonly onEnd: (error: ServiceError | undefined) => void;
}

const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2_000;

/**
 * A stream from a gateway that is opened again, at whichever is there, each time that it breaks.
 *
 * At most one is open: what an earlier one still brings is ignored (`#generation`).
 */
export class ResumedStream<Request, Message> {
  readonly #requester: Requester;
  readonly #method: Method<Request, Message>;
  readonly #ports: ResumedStreamPorts<Request, Message>;
  #stream: StreamHandle<Request> | undefined;
  #timer: Timer | undefined;
  #generation = 0;
  #failures = 0;
  #over = false;

  constructor(requester: Requester, method: Method<Request, Message>, ports: ResumedStreamPorts<Request, Message>) {
    this.#requester = requester;
    this.#method = method;
    this.#ports = ports;
  }

  /** Does nothing while it is open, or about to be. */
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
        this.#ports.onMessage(message);
      },
      (error) => {
        if (current()) this.#broke(channel, error);
      },
    );
    if (current()) this.#stream = stream;
    else stream.cancel();
  }

  /** Until it is opened again. */
  pause(): void {
    this.#generation++;
    this.#stream?.cancel();
    this.#stream = undefined;
  }

  close(): void {
    this.#over = true;
    this.pause();
    this.#timer?.cancel();
  }

  #broke(channel: ReconnectingChannel, error: ServiceError | undefined): void {
    this.#stream = undefined;
    this.#generation++;
    this.#requester.gateways.failed(channel);
    const { closed } = this.#requester;
    const lasting = error !== undefined && error.retry === 'no' && error.code !== 'DEADLINE_EXCEEDED';
    if (lasting || closed) {
      this.close();
      return this.#ports.onEnd(closed ? undefined : error);
    }
    const { clock, random } = this.#requester.ports;
    const ceilingMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(this.#failures++, 6));
    this.#timer = clock.setTimer(ceilingMs / 2 + random.int(Math.ceil(ceilingMs / 2)), () => {
      this.#timer = undefined;
      this.open();
    });
  }
}
