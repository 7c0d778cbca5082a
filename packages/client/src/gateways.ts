import { ServiceError } from '@remora/base';
import { ReconnectingChannel } from '@remora/protocol';
import type { ClientPorts } from './ports.ts';

const CONNECT_TIMEOUT_MS = 2_000;

/** The gateways that the client may use; one at a time carries everything, the next one takes over when it is gone. */
export class Gateways {
  readonly #channels: readonly ReconnectingChannel[];
  #current: number;

  constructor(ports: ClientPorts, endpoints: readonly string[]) {
    if (endpoints.length === 0) throw new ServiceError('INVALID_ARGUMENT', 'endpoints: name at least one gateway');
    this.#channels = endpoints.map((endpoint) => {
      const address = endpoint.replace(/^https?:\/\//, '');
      return new ReconnectingChannel(
        {
          connect: ports.connectLink,
          clock: ports.clock,
          random: ports.random,
          logger: ports.logger,
          options: { connectTimeoutMs: CONNECT_TIMEOUT_MS },
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

  close(): void {
    for (const channel of this.#channels) channel.close();
  }
}
