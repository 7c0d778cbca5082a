/**
 * Discovers gateways in addition to the given endpoints, so that the client goes on when those hang.
 *
 * DY1. A discovered gateway is used only after the given ones, and only once it has answered this client: gateways
 *      advertise addresses inside their network, which may not be reachable from outside (NAT, port forwarding). No
 *      request waits for these attempts.
 * DY2. A discovered gateway has to belong to the same cluster, at every new connection (PL2 of the Pipe): its address
 *      may be that of another cluster in the network of the client. Loopback addresses are tried only by a client that
 *      was given one.
 * DY3. Discovered gateways are connected to in the same way as given ones, with or without TLS. A client with
 *      credentials uses only those to which it may send them.
 * DY4. At most `FOUND_MAX` addresses are kept: those that have answered before, and then random ones, so that clients
 *      spread over them when a gateway fails.
 * DY5. Each address is tried soon after the client has connected, when the present gateway fails (at most once a
 *      second), and at each refresh until it answers.
 */
import { parseAddress, type Timer } from '@remora/base';
import { type PipeGateways, pipeGateways } from '@remora/protocol';
import type { ClientPorts } from '../ports.ts';
import type { Gateways } from './gateways.ts';

/** DY4. */
const FOUND_MAX = 5;
const REFRESH_MS = 60_000;
/** Short-lived clients end before that, and try nothing. */
const FIRST_TRY_MS = 1_000;
const TRY_AGAIN_MS = 1_000;
const ASK_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 1_000;

export interface DiscoveryPorts extends Pick<ClientPorts, 'clock' | 'random' | 'mayLogInAt'> {
  readonly gateways: Gateways;
  /** Called with the gateways that the cluster names, for the background renewer, which does not ask itself. */
  readonly onTold?: (told: PipeGateways) => void;
}

export class Discovery {
  readonly #ports: DiscoveryPorts;
  #told: PipeGateways = { cluster: '', addresses: [] };
  readonly #trying = new Set<{ close(): void }>();
  #triedMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #closed = false;

  constructor(ports: DiscoveryPorts) {
    this.#ports = ports;
    ports.gateways.onTrouble = () => this.#tryNow();
  }

  /** Asks the cluster now, and periodically from then on. */
  begin(): void {
    this.#ask();
  }

  /** Takes the gateways that the cluster has named. */
  learn({ cluster, addresses }: PipeGateways): void {
    if (this.#closed) return;
    const { gateways, random, clock, mayLogInAt = () => true } = this.#ports;
    const all = [...new Set(addresses)].filter((address) => mayTry(address, gateways.given) && mayLogInAt(address));
    shuffle(all, random);
    const found = cluster === this.#told.cluster ? all.filter((address) => gateways.has(address)) : [];
    const kept = [...found, ...all.filter((address) => !found.includes(address))].slice(0, FOUND_MAX);
    this.#told = { cluster, addresses: kept };
    gateways.keepFound(new Set(kept));
    if (kept.every((address) => gateways.has(address))) return;
    const delayMs = FIRST_TRY_MS + random.int(FIRST_TRY_MS);
    clock.setTimer(delayMs, () => this.#try());
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    for (const channel of this.#trying) channel.close();
  }

  #ask(): void {
    const { gateways, clock, random, onTold } = this.#ports;
    gateways.channel.call(pipeGateways, undefined, { timeoutMs: ASK_TIMEOUT_MS }, (_error, told) => {
      if (told === undefined) return;
      this.learn(told);
      onTold?.(this.#told);
    });
    this.#timer = clock.setTimer(REFRESH_MS + random.int(REFRESH_MS / 4), () => this.#ask());
  }

  /** DY5. */
  #tryNow(): void {
    if (this.#ports.clock.monotonicMs() - this.#triedMs >= TRY_AGAIN_MS) this.#try();
  }

  /** Tries all of them at once: an unreachable one does not delay the others. */
  #try(): void {
    if (this.#closed) return;
    const { gateways, clock } = this.#ports;
    this.#triedMs = clock.monotonicMs();
    const { cluster, addresses } = this.#told;
    for (const address of addresses) {
      if (gateways.has(address)) continue;
      const channel = gateways.channelTo(address, CONNECT_TIMEOUT_MS, cluster);
      this.#trying.add(channel);
      channel.call(pipeGateways, undefined, { timeoutMs: ASK_TIMEOUT_MS }, (error) => {
        this.#trying.delete(channel);
        channel.close();
        const isStillTold = this.#told.cluster === cluster && this.#told.addresses.includes(address);
        if (error === undefined && isStillTold && !this.#closed) gateways.found(address, cluster);
      });
    }
  }
}

/** DY2: whether a client with the endpoints `given` may try an address that a gateway advertises. */
export function mayTry(address: string, given: readonly string[]): boolean {
  if (given.includes(address)) return false;
  const host = parseAddress(address)?.host;
  if (host === undefined || UNSPECIFIED.has(host)) return false;
  return !isLoopback(host) || given.some((endpoint) => isLoopback(parseAddress(endpoint)?.host ?? ''));
}

/** Addresses of a node that listens on all addresses and advertises none. */
const UNSPECIFIED: ReadonlySet<string> = new Set(['0.0.0.0', '::', '']);

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}

function shuffle(list: string[], random: ClientPorts['random']): void {
  for (let i = list.length - 1; i > 0; i--) {
    const j = random.int(i + 1);
    [list[i], list[j]] = [list[j] ?? '', list[i] ?? ''];
  }
}
