/**
 * Gateways that are found by a name in DNS with SRV records (RFC 2782).
 *
 * SV1. The records are looked up at each connection, and nothing is kept: gateways may come and go.
 * SV2. Targets with a lower priority come first. Among those with the same one, the order is random by weight, so many
 *      clients spread over them. A target that cannot be reached is followed by the next one.
 * SV3. A name without records fails the connection, as a host that cannot be reached does: it is looked up again at the
 *      next attempt.
 */
import { resolveSrv } from 'node:dns/promises';
import { formatAddress, type Random, ServiceError, srvNameOf, toServiceError } from '@remora/base';
import type { FrameLink, FrameReceiver } from '@remora/protocol';

export interface SrvRecord {
  readonly name: string;
  readonly port: number;
  readonly priority: number;
  readonly weight: number;
}

type SrvLookup = (name: string) => Promise<readonly SrvRecord[]>;

export interface SrvPorts {
  readonly random: Pick<Random, 'int'>;
  /** Opens a connection to an address, `host:port`. */
  readonly dial: (address: string) => FrameLink;
  readonly lookUp?: SrvLookup;
}

/** A connection to an endpoint: an address, or `srv://NAME`. */
export function linkTo(endpoint: string, ports: SrvPorts): FrameLink {
  const name = srvNameOf(endpoint);
  return name === undefined ? ports.dial(endpoint) : new SrvLink(name, ports);
}

/** SV2. At most this many targets are tried for one connection. */
const TARGETS_MAX = 16;

class SrvLink implements FrameLink {
  readonly #name: string;
  readonly #ports: SrvPorts;
  #link: FrameLink | undefined;
  #closed = false;

  constructor(name: string, ports: SrvPorts) {
    this.#name = name;
    this.#ports = ports;
  }

  start(receiver: FrameReceiver): void {
    const { lookUp = resolveSrv, random } = this.#ports;
    lookUp(this.#name).then(
      (records) => this.#try(targetsOf(records, random), receiver, undefined),
      (cause) => this.#fail(receiver, cause),
    );
  }

  #try(targets: readonly string[], receiver: FrameReceiver, failure: ServiceError | undefined): void {
    if (this.#closed) return;
    const [target, ...others] = targets;
    if (target === undefined) return this.#fail(receiver, failure ?? new Error('it has no targets'));
    const link = this.#ports.dial(target);
    this.#link = link;
    let opened = false;
    link.start({
      onOpen: () => {
        opened = true;
        receiver.onOpen();
      },
      onHeard: () => receiver.onHeard?.(),
      onFrame: (frame) => receiver.onFrame(frame),
      onDrain: () => receiver.onDrain(),
      onClose: (error) => {
        if (opened) receiver.onClose(error);
        else this.#try(others, receiver, error);
      },
    });
  }

  /** SV3. */
  #fail(receiver: FrameReceiver, cause: unknown): void {
    if (this.#closed) return;
    const error = toServiceError(cause);
    if (cause instanceof ServiceError) return receiver.onClose(error);
    const message = `the SRV records of ${this.#name} were not found: ${error.message}`;
    receiver.onClose(new ServiceError('UNAVAILABLE', message, { cause }));
  }

  send(frame: Uint8Array): boolean {
    return this.#link?.send(frame) ?? true;
  }

  holdsBack(bytes: number): void {
    this.#link?.holdsBack?.(bytes);
  }

  close(reason?: ServiceError): void {
    this.#closed = true;
    this.#link?.close(reason);
  }
}

/** SV2. The addresses in the order in which they are tried. A target `.` means that there is none (RFC 2782). */
export function targetsOf(records: readonly SrvRecord[], random: Pick<Random, 'int'>): readonly string[] {
  const left = records.filter(({ name }) => name !== '' && name !== '.');
  const order: SrvRecord[] = [];
  while (left.length > 0) {
    const priority = Math.min(...left.map((record) => record.priority));
    const equals = left.filter((record) => record.priority === priority);
    const next = chosen(equals, random);
    left.splice(left.indexOf(next), 1);
    order.push(next);
  }
  return order.slice(0, TARGETS_MAX).map(({ name: host, port }) => formatAddress({ host, port }));
}

/** One of them, with a chance in proportion to its weight. One without a weight has a small chance. */
function chosen(records: readonly SrvRecord[], random: Pick<Random, 'int'>): SrvRecord {
  const weights = records.map(({ weight }) => 10 * weight + 1);
  let at = random.int(weights.reduce((sum, weight) => sum + weight, 0));
  const index = weights.findIndex((weight) => {
    at -= weight;
    return at < 0;
  });
  return records[index] as SrvRecord;
}
