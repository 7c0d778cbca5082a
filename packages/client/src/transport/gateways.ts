import { readEndpoints, ServiceError } from '@remora/base';
import { DEFAULT_CALLER_LIMITS, type LinkGuardFactory, ReconnectingChannel } from '@remora/protocol';
import type { ClientPorts } from '../ports.ts';

/** For a given endpoint, which may be far away. */
const CONNECT_TIMEOUT_MS = 2_000;
/** For a discovered gateway, which was reached before. */
const FOUND_CONNECT_TIMEOUT_MS = 1_000;

export interface GatewayOptions {
  readonly endpoints: readonly string[];
  /** A larger request is refused by the client, as its frame would end the connection. */
  readonly requestBytesMax: number;
  /** Logs each new connection in. Absent: the client has no credentials. */
  readonly guard?: LinkGuardFactory | undefined;
}

/** A gateway that the client may use. */
interface Gateway {
  readonly address: string;
  readonly channel: ReconnectingChannel;
  readonly isGiven: boolean;
}

/**
 * The gateways that the client may use. One at a time carries everything; the next one takes over when that one is
 * disconnected, or connected but does not answer.
 *
 * GW1. The given endpoints always stay, and come first. Discovered gateways (discovery.ts) come after them; one that is
 *      disconnected is dropped until it is discovered again.
 */
export class Gateways {
  readonly #ports: ClientPorts;
  readonly #requestBytesMax: number;
  readonly #guard: LinkGuardFactory | undefined;
  readonly #given: readonly Gateway[];
  #found: readonly Gateway[] = [];
  #current: Gateway;
  /** Whether a request at the present gateway has timed out since the last answer. */
  #doubtful = false;
  /** Called whenever the present gateway has failed. */
  onTrouble: () => void = () => {};

  constructor(ports: ClientPorts, { endpoints, requestBytesMax, guard }: GatewayOptions) {
    this.#ports = ports;
    this.#requestBytesMax = requestBytesMax;
    this.#guard = guard;
    const { addresses } = readEndpoints(endpoints, { srv: true });
    this.#given = addresses.map((address) => ({
      address,
      channel: this.channelTo(address, CONNECT_TIMEOUT_MS),
      isGiven: true,
    }));
    // Clients start at random gateways, which spreads the load.
    const first = this.#given[ports.random.int(Math.max(1, addresses.length))];
    if (first === undefined) throw new ServiceError('INVALID_ARGUMENT', 'endpoints: name at least one gateway');
    this.#current = first;
  }

  get channel(): ReconnectingChannel {
    return this.#current.channel;
  }

  addressOf(channel: ReconnectingChannel): string {
    return this.#of(channel)?.address ?? '';
  }

  get count(): number {
    return this.#given.length + this.#found.length;
  }

  /** The endpoints that were given. */
  get given(): readonly string[] {
    return this.#given.map(({ address }) => address);
  }

  has(address: string): boolean {
    return this.#all().some((gateway) => gateway.address === address);
  }

  /** A new channel to an address; the caller closes it. `cluster`: the cluster id that has to answer (PL2). */
  channelTo(address: string, connectTimeoutMs: number, cluster?: string): ReconnectingChannel {
    const { clock, random, logger, connectLink } = this.#ports;
    const limits = { ...DEFAULT_CALLER_LIMITS, requestBytesMax: this.#requestBytesMax };
    const connect: typeof connectLink = (target) =>
      connectLink(cluster === undefined ? target : { ...target, cluster });
    const ports = { connect, clock, random, logger, guard: this.#guard, options: { connectTimeoutMs, limits } };
    return new ReconnectingChannel(ports, 0, () => address);
  }

  /** GW1. Adds a discovered gateway, at which the cluster answers. */
  found(address: string, cluster: string): void {
    if (this.has(address)) return;
    const channel = this.channelTo(address, FOUND_CONNECT_TIMEOUT_MS, cluster);
    this.#found = [...this.#found, { address, channel, isGiven: false }];
  }

  /** Drops the discovered gateways with other addresses, except the one in use. */
  keepFound(addresses: ReadonlySet<string>): void {
    for (const gateway of this.#found) {
      if (!addresses.has(gateway.address) && gateway !== this.#current) this.#drop(gateway);
    }
  }

  /**
   * A request on `channel` failed. If that gateway is disconnected, the next one is used from now on. `cutOff`: the
   * gateway is connected, but does not answer, or reaches no range.
   */
  failed(channel: ReconnectingChannel, cutOff = false): void {
    if (!cutOff && channel.connected) return;
    const gateway = this.#of(channel);
    if (gateway === undefined) return;
    if (gateway === this.#current) this.#goOn();
    if (!gateway.isGiven && !channel.connected) this.#drop(gateway); // GW1
  }

  /** A request on `channel` timed out. The second one in a row makes the client change to the next gateway. */
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

  /** The gateway of this address, if it is one of the given endpoints and not the present one. */
  other(address: string): ReconnectingChannel | undefined {
    const gateway = this.#given.find((given) => given.address === address);
    return gateway === this.#current ? undefined : gateway?.channel;
  }

  /** Uses this gateway from now on. Requests in flight stay where they are. */
  prefer(channel: ReconnectingChannel): void {
    const gateway = this.#of(channel);
    if (gateway !== undefined) this.#use(gateway);
  }

  /** Sends what is queued for the present gateway now, without waiting for the end of the turn. */
  flush(): void {
    this.channel.flush();
  }

  close(): void {
    for (const { channel } of this.#all()) channel.close();
  }

  #all(): readonly Gateway[] {
    return this.#found.length === 0 ? this.#given : [...this.#given, ...this.#found];
  }

  #of(channel: ReconnectingChannel): Gateway | undefined {
    return this.#all().find((gateway) => gateway.channel === channel);
  }

  /** To the next one, if there is any. */
  #goOn(): void {
    const all = this.#all();
    this.#use(all[(all.indexOf(this.#current) + 1) % all.length] ?? this.#current);
    this.onTrouble();
  }

  #use(gateway: Gateway): void {
    this.#current = gateway;
    this.#doubtful = false;
  }

  /** Requests in flight there continue at another gateway, as when a gateway stops. */
  #drop(gateway: Gateway): void {
    this.#found = this.#found.filter((other) => other !== gateway);
    gateway.channel.close();
  }
}
