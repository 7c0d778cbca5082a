import { readEndpoints, ServiceError } from '@remora/base';
import { DEFAULT_CALLER_LIMITS, ReconnectingChannel } from '@remora/protocol';
import type { ClientPorts } from './ports.ts';

const CONNECT_TIMEOUT_MS = 2_000;

export interface GatewayOptions {
  readonly endpoints: readonly string[];
  /** A larger request is refused here, as its frame would end the connection. */
  readonly requestBytesMax: number;
}

/**
 * The gateways that the client may use; one at a time carries everything, the next one takes over when it is gone, or
 * when it is there and brings nothing to an end.
 */
export class Gateways {
  readonly #channels: readonly ReconnectingChannel[];
  readonly #addresses: readonly string[];
  #current: number;
  /** Whether the present gateway has failed since it last brought a request to an end. */
  #doubtful = false;

  constructor(ports: ClientPorts, { endpoints, requestBytesMax }: GatewayOptions) {
    this.#addresses = readEndpoints(endpoints).addresses;
    this.#channels = this.#addresses.map((address) => {
      return new ReconnectingChannel(
        {
          connect: ports.connectLink,
          clock: ports.clock,
          random: ports.random,
          logger: ports.logger,
          options: { connectTimeoutMs: CONNECT_TIMEOUT_MS, limits: { ...DEFAULT_CALLER_LIMITS, requestBytesMax } },
        },
        0,
        () => address,
      );
    });
    // Clients begin at different gateways, so that load spreads without anybody's doing.
    this.#current = ports.random.int(this.#channels.length);
  }

  get channel(): ReconnectingChannel {
    const channel = this.#channels[this.#current];
    if (channel === undefined) throw new ServiceError('INTERNAL', 'no gateway');
    return channel;
  }

  addressOf(channel: ReconnectingChannel): string {
    return this.#addresses[this.#channels.indexOf(channel)] ?? '';
  }

  get count(): number {
    return this.#channels.length;
  }

  /**
   * A request on `channel` failed: when that gateway is not connected, the next one is used from now on. `cutOff`: it
   * answers, if at all, that it reaches no range; or it gives no sign of life.
   */
  failed(channel: ReconnectingChannel, cutOff = false): void {
    if (channel === this.channel && (cutOff || !channel.connected)) {
      this.#use((this.#current + 1) % this.#channels.length);
    }
  }

  /** A request on `channel` was not brought to an end in its time: the second in a row is one too many. */
  doubt(channel: ReconnectingChannel): void {
    if (channel !== this.channel) return;
    const again = this.#doubtful;
    this.#doubtful = true;
    this.failed(channel, again);
  }

  /** A range answered through `channel`. */
  served(channel: ReconnectingChannel): void {
    if (this.#doubtful && channel === this.channel) this.#doubtful = false;
  }

  /** The gateway of this address, if it is one of the endpoints and not the present one. */
  other(address: string): ReconnectingChannel | undefined {
    const index = this.#addresses.indexOf(address);
    return index === this.#current ? undefined : this.#channels[index];
  }

  /** Uses this gateway from now on; what is under way stays where it is. */
  prefer(channel: ReconnectingChannel): void {
    this.#use(this.#channels.indexOf(channel));
  }

  /** Sends what waits for the present gateway now, and not at the end of the turn. */
  flush(): void {
    this.channel.flush();
  }

  close(): void {
    for (const channel of this.#channels) channel.close();
  }

  #use(index: number): void {
    this.#current = index;
    this.#doubtful = false;
  }
}
