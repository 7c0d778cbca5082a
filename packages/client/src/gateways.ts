import { ServiceError } from '@remora/base';
import { DEFAULT_CALLER_LIMITS, ReconnectingChannel } from '@remora/protocol';
import type { ClientPorts } from './ports.ts';

const CONNECT_TIMEOUT_MS = 2_000;

export interface GatewayOptions {
  readonly endpoints: readonly string[];
  /** A larger request is refused here, as its frame would end the connection. */
  readonly requestBytesMax: number;
}

/** The gateways that the client may use; one at a time carries everything, the next one takes over when it is gone. */
export class Gateways {
  readonly #channels: readonly ReconnectingChannel[];
  readonly #addresses: readonly string[];
  #current: number;

  constructor(ports: ClientPorts, { endpoints, requestBytesMax }: GatewayOptions) {
    if (endpoints.length === 0) throw new ServiceError('INVALID_ARGUMENT', 'endpoints: name at least one gateway');
    this.#addresses = endpoints.map((endpoint) => endpoint.replace(/^https?:\/\//, ''));
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

  get count(): number {
    return this.#channels.length;
  }

  /** A request on `channel` failed: when that gateway is not connected, the next one is used from now on. */
  failed(channel: ReconnectingChannel): void {
    if (channel === this.channel && !channel.connected) this.#current = (this.#current + 1) % this.#channels.length;
  }

  /** Uses this gateway from now on, if it is one of the endpoints; what is under way stays where it is. */
  prefer(address: string): void {
    const index = this.#addresses.indexOf(address);
    if (index >= 0) this.#current = index;
  }

  close(): void {
    for (const channel of this.#channels) channel.close();
  }
}
