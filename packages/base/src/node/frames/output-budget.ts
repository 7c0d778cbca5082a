/**
 * Limits on the data that waits for callers of one port that do not read.
 *
 * OB1. Bytes that the socket has not taken are counted in total and by address, together with those that its sender
 *      holds back for it.
 * OB2. If an address exceeds its share, its connection with the most bytes is closed; if the total is exceeded, that of
 *      the address with the most bytes. No connection is closed for bytes that have left since they were counted.
 * OB3. Closed connections are counted by reason, and logged once a minute.
 * OB4. A caller that has proved to be a node of the cluster is no longer counted.
 */
import type { Clock } from '../../clock.ts';
import { type Logger, silentLogger } from '../../logger.ts';
import { RareLog } from '../../rare-log.ts';
import { addressKey } from './address-key.ts';

export interface OutputLimits {
  /** Bytes that wait to be sent, of all connections. */
  readonly bytesMax: number;
  /** Of these, to one address. */
  readonly bytesPerAddressMax: number;
}

export const OUTPUT_LIMITS: OutputLimits = { bytesMax: 256 << 20, bytesPerAddressMax: 64 << 20 };

/** Why connections were closed. */
export const UNREAD_CLOSED_FOR = ['unread_bytes', 'address_unread_bytes'] as const;
export type UnreadClosedFor = (typeof UNREAD_CLOSED_FOR)[number];

export interface OutputStats {
  readonly unreadBytes: number;
  readonly closed: Readonly<Record<UnreadClosedFor, number>>;
}

interface ToAddress {
  readonly address: string;
  bytes: number;
  /** Accounts with waiting data. */
  readonly waiting: Set<OutputAccount>;
}

/** The connection behind an account. */
export interface CountedOutput {
  /** The number of bytes that wait now. */
  pendingBytes(): number;
  /** Ends the connection at once. */
  close(): void;
}

export class OutputBudget {
  readonly #limits: OutputLimits;
  readonly #log: RareLog;
  /** Has an entry for each address with waiting data. */
  readonly #byAddress = new Map<string, ToAddress>();
  readonly #closed: Record<UnreadClosedFor, number> = { unread_bytes: 0, address_unread_bytes: 0 };
  #bytes = 0;

  constructor(limits: OutputLimits, clock: Clock, logger: Pick<Logger, 'warn'> = silentLogger) {
    this.#limits = limits;
    this.#log = new RareLog(clock, logger);
  }

  get stats(): OutputStats {
    for (const to of this.#byAddress.values()) this.#recount(to);
    return { unreadBytes: this.#bytes, closed: { ...this.#closed } };
  }

  open(remoteAddress: string | undefined, output: CountedOutput): OutputAccount {
    const address = addressKey(remoteAddress);
    return new OutputAccount(output, (account, bytes) => this.#holds(address, account, bytes));
  }

  #holds(address: string, account: OutputAccount, bytes: number): void {
    let to = this.#byAddress.get(address);
    if (to === undefined) {
      to = { address, bytes: 0, waiting: new Set() };
      this.#byAddress.set(address, to);
    }
    this.#count(to, account, bytes);
    const { bytesMax, bytesPerAddressMax } = this.#limits;
    if (to.bytes > bytesPerAddressMax) this.#recount(to);
    while (to.bytes > bytesPerAddressMax) this.#closeLargest(to, 'address_unread_bytes');
    if (this.#bytes <= bytesMax) return;
    for (const each of this.#byAddress.values()) this.#recount(each);
    while (this.#bytes > bytesMax) this.#closeLargest(this.#largest(), 'unread_bytes');
  }

  #count(to: ToAddress, account: OutputAccount, bytes: number): void {
    const more = bytes - account.bytes;
    account.bytes = bytes;
    to.bytes += more;
    this.#bytes += more;
    if (bytes > 0) to.waiting.add(account);
    else to.waiting.delete(account);
    if (to.waiting.size === 0) this.#byAddress.delete(to.address);
  }

  /** OB2. A socket does not report each byte that it takes. */
  #recount(to: ToAddress): void {
    for (const account of to.waiting) this.#count(to, account, account.pendingBytes());
  }

  #largest(): ToAddress | undefined {
    let largest: ToAddress | undefined;
    for (const to of this.#byAddress.values()) if (to.bytes > (largest?.bytes ?? 0)) largest = to;
    return largest;
  }

  #closeLargest(to: ToAddress | undefined, reason: UnreadClosedFor): void {
    let largest: OutputAccount | undefined;
    for (const account of to?.waiting ?? []) if (account.bytes > (largest?.bytes ?? 0)) largest = account;
    this.#closed[reason]++;
    const fields = { reason, address: to?.address, bytes: largest?.bytes, unreadBytes: this.#bytes };
    this.#log.warn(reason, fields, 'closed a connection that does not read its responses');
    largest?.end();
    largest?.close();
  }
}

/** The waiting data of one connection. */
export class OutputAccount {
  bytes = 0;
  readonly #output: CountedOutput;
  readonly #holds: (account: OutputAccount, bytes: number) => void;
  #over = false;

  constructor(output: CountedOutput, holds: (account: OutputAccount, bytes: number) => void) {
    this.#output = output;
    this.#holds = holds;
  }

  close(): void {
    this.#output.close();
  }

  pendingBytes(): number {
    return this.#output.pendingBytes();
  }

  /** Reports the number of waiting bytes. */
  holds(bytes: number): void {
    if (bytes !== this.bytes && !this.#over) this.#holds(this, bytes);
  }

  /** The connection is closed, or no longer counted (OB4). */
  end(): void {
    this.holds(0);
    this.#over = true;
  }
}
