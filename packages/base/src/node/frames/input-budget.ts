/**
 * What the connections of one port may hold while they have not said something whole.
 *
 * IB1. Connections are counted, in all and by address. One more than allowed is closed as it comes.
 * IB2. Bytes of unfinished frames are counted, in all and by address. When an address holds more than its share, its
 *      connection whose frame began first is closed; when all together hold too many, that of the address with the most.
 *      Clients finish a frame in moments, so it is not theirs that began first, even behind one address with a stranger.
 * IB3. A frame that has begun must be whole in a bounded time.
 * IB4. What is closed is counted by its reason, and logged once a minute.
 * IB5. A caller that turned out to be one of the cluster's nodes is not counted any more: strangers take nothing from it.
 */
import type { Clock, Timer } from '../../clock.ts';
import { type Logger, silentLogger } from '../../logger.ts';
import { RareLog } from '../../rare-log.ts';
import { addressKey } from './address-key.ts';

export interface InputLimits {
  /** Connections at a time. */
  readonly connectionsMax: number;
  /** Of these, from one address. */
  readonly connectionsPerAddressMax: number;
  /** Bytes of frames that have begun and are not whole, of all connections. */
  readonly bytesMax: number;
  /** Of these, from one address. */
  readonly bytesPerAddressMax: number;
  /** How long a frame may take from its first byte to its last. */
  readonly messageMs: number;
}

export const INPUT_LIMITS: InputLimits = {
  connectionsMax: 10_000,
  connectionsPerAddressMax: 2_000,
  bytesMax: 256 << 20,
  bytesPerAddressMax: 64 << 20,
  messageMs: 60_000,
};

/** Why connections were closed. */
export const CLOSED_FOR = ['connections', 'address_connections', 'bytes', 'address_bytes', 'slow_message'] as const;
export type ClosedFor = (typeof CLOSED_FOR)[number];

export interface InputStats {
  readonly connections: number;
  readonly unfinishedBytes: number;
  readonly closed: Readonly<Record<ClosedFor, number>>;
}

/** How often frames that take too long are looked for. */
const LOOK_MS = 1_000;

interface FromAddress {
  readonly address: string;
  connections: number;
  bytes: number;
  /** Those with an unfinished frame, in the order in which these began. */
  readonly unfinished: Set<InputAccount>;
}

export class InputBudget {
  readonly #limits: InputLimits;
  readonly #clock: Clock;
  readonly #log: RareLog;
  readonly #byAddress = new Map<string, FromAddress>();
  /** Of all addresses, in the order in which their frames began. */
  readonly #unfinished = new Set<InputAccount>();
  readonly #closed: Record<ClosedFor, number>;
  #connections = 0;
  #bytes = 0;
  #timer: Timer | undefined;

  constructor(limits: InputLimits, clock: Clock, logger: Pick<Logger, 'warn'> = silentLogger) {
    this.#limits = limits;
    this.#clock = clock;
    this.#log = new RareLog(clock, logger);
    this.#closed = { connections: 0, address_connections: 0, bytes: 0, address_bytes: 0, slow_message: 0 };
  }

  get stats(): InputStats {
    return { connections: this.#connections, unfinishedBytes: this.#bytes, closed: { ...this.#closed } };
  }

  /** Counts a connection; undefined when there are too many (IB1). `close` ends it at once. */
  admit(remoteAddress: string | undefined, close: () => void): InputAccount | undefined {
    const address = addressKey(remoteAddress);
    const from = this.#byAddress.get(address) ?? { address, connections: 0, bytes: 0, unfinished: new Set() };
    const { connectionsMax, connectionsPerAddressMax } = this.#limits;
    if (this.#connections >= connectionsMax) return this.#refuse('connections', from);
    if (from.connections >= connectionsPerAddressMax) return this.#refuse('address_connections', from);
    this.#byAddress.set(address, from);
    this.#connections++;
    from.connections++;
    return new InputAccount(
      (account, bytes, anew) => this.#holds(from, account, bytes, anew),
      (account) => this.#left(from, account),
      close,
    );
  }

  #refuse(reason: ClosedFor, { address }: FromAddress): undefined {
    this.#closed[reason]++;
    this.#tell(reason, address);
  }

  #holds(from: FromAddress, account: InputAccount, bytes: number, anew: boolean): void {
    const more = bytes - account.bytes;
    account.bytes = bytes;
    this.#bytes += more;
    from.bytes += more;
    if (bytes === 0 || anew) {
      this.#unfinished.delete(account);
      from.unfinished.delete(account);
    }
    if (bytes === 0) return;
    if (anew) account.begunMs = this.#clock.monotonicMs();
    this.#unfinished.add(account);
    from.unfinished.add(account);
    this.#timer ??= this.#clock.setTimer(LOOK_MS, () => this.#look());
    this.#keepWithin(from);
  }

  /** IB2. */
  #keepWithin(from: FromAddress): void {
    const { bytesMax, bytesPerAddressMax } = this.#limits;
    while (from.bytes > bytesPerAddressMax) this.#closeFirst(from, 'address_bytes');
    while (this.#bytes > bytesMax) this.#closeFirst(this.#largest(), 'bytes');
  }

  #largest(): FromAddress | undefined {
    let largest: FromAddress | undefined;
    for (const from of this.#byAddress.values()) if (from.bytes > (largest?.bytes ?? 0)) largest = from;
    return largest;
  }

  #closeFirst(from: FromAddress | undefined, reason: ClosedFor): void {
    for (const account of from?.unfinished ?? []) return this.#close(account, from?.address ?? '', reason);
  }

  /** IB3. */
  #look(): void {
    const beforeMs = this.#clock.monotonicMs() - this.#limits.messageMs;
    for (const account of this.#unfinished) {
      if (account.begunMs > beforeMs) break;
      this.#close(account, 'one or more', 'slow_message');
    }
    this.#timer = this.#unfinished.size === 0 ? undefined : this.#clock.setTimer(LOOK_MS, () => this.#look());
  }

  #close(account: InputAccount, address: string, reason: ClosedFor): void {
    this.#closed[reason]++;
    this.#tell(reason, address);
    account.end();
    account.close();
  }

  #tell(reason: ClosedFor, address: string): void {
    const { connections, unfinishedBytes } = this.stats;
    this.#log.warn(reason, { reason, address, connections, unfinishedBytes }, 'closed a connection');
  }

  #left(from: FromAddress, account: InputAccount): void {
    this.#holds(from, account, 0, false);
    this.#connections--;
    if (--from.connections === 0) this.#byAddress.delete(from.address);
  }
}

/** What one connection has. */
export class InputAccount {
  bytes = 0;
  begunMs = 0;
  readonly close: () => void;
  readonly #holds: (account: InputAccount, bytes: number, anew: boolean) => void;
  readonly #left: (account: InputAccount) => void;
  #frame = -1;
  #over = false;

  constructor(
    holds: (account: InputAccount, bytes: number, anew: boolean) => void,
    left: (account: InputAccount) => void,
    close: () => void,
  ) {
    this.#holds = holds;
    this.#left = left;
    this.close = close;
  }

  /** The connection holds so many bytes of a frame that is not whole, the one after `frames` others. */
  unfinished(bytes: number, frames: number): void {
    if (this.#over || (bytes === 0 && this.bytes === 0)) return;
    const anew = frames !== this.#frame || this.bytes === 0;
    this.#frame = frames;
    this.#holds(this, bytes, anew);
  }

  /** The connection is closed, or not counted any more (IB5). */
  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#left(this);
  }
}
