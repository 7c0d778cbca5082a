/**
 * Limits on what the connections of one port may hold before they have sent a complete frame.
 *
 * IB1. Connections are counted in total and by address. One beyond the limit is closed on arrival. At a port for nodes,
 *      IB6 applies instead.
 * IB2. Bytes of unfinished frames are counted in total and by address. If an address exceeds its share, its connection
 *      with the oldest unfinished frame is closed; if the total is exceeded, that of the address with the most bytes.
 *      Clients finish a frame within moments, so their frames are not the oldest, even behind the same address as a
 *      stranger.
 * IB3. A frame must be complete within a bounded time after its first byte.
 * IB4. Closed connections are counted by reason, and logged once a minute.
 * IB5. A caller that has proved to be a node of the cluster is no longer counted, so strangers take nothing from it.
 * IB6. At a port for nodes, every connection counts as a stranger's until IB5 applies. Strangers never keep a node out:
 *      there is room for some that have not said hello, and for fewer that have (`StrangerLimits`). When it is full,
 *      the newest connection is accepted and the quietest one is closed (crowd.ts). A node says hello immediately and
 *      counts as a node from then on. A stranger that has said hello is closed if it makes no call for a while.
 */
import type { Clock, Timer } from '../../clock.ts';
import { type Logger, silentLogger } from '../../logger.ts';
import { RareLog } from '../../rare-log.ts';
import { addressKey } from './address-key.ts';
import { Crowd } from './crowd.ts';

export interface InputLimits {
  /** The most connections at a time. */
  readonly connectionsMax: number;
  /** Of these, from one address. */
  readonly connectionsPerAddressMax: number;
  /** Bytes of unfinished frames, of all connections. */
  readonly bytesMax: number;
  /** Of these, from one address. */
  readonly bytesPerAddressMax: number;
  /** How long a frame may take from its first byte to its last. */
  readonly messageMs: number;
  /** For a port for nodes, instead of `connectionsMax` and `connectionsPerAddressMax` (IB6). */
  readonly strangers?: StrangerLimits;
}

/** The limits of connections that are not known to be nodes at a port for nodes (IB6). */
export interface StrangerLimits {
  /** Connections that have not said hello. */
  readonly silentMax: number;
  readonly silentPerAddressMax: number;
  /** Connections that have said hello and do not belong to a node. */
  readonly anonymousMax: number;
  readonly anonymousPerAddressMax: number;
  /** How long such a connection may go without a call. */
  readonly idleMs: number;
}

/** A joining node has one link to each master that it asks, and asks several times a second. */
export const STRANGER_LIMITS: StrangerLimits = {
  silentMax: 1_000,
  silentPerAddressMax: 200,
  anonymousMax: 200,
  anonymousPerAddressMax: 20,
  idleMs: 10_000,
};

export const INPUT_LIMITS: InputLimits = {
  connectionsMax: 10_000,
  connectionsPerAddressMax: 2_000,
  bytesMax: 256 << 20,
  bytesPerAddressMax: 64 << 20,
  messageMs: 60_000,
};

/** Why connections were closed. */
export const CLOSED_FOR = [
  ...(['connections', 'address_connections', 'bytes', 'address_bytes', 'slow_message'] as const),
  ...(['strangers', 'address_strangers', 'idle_stranger'] as const),
];
export type ClosedFor = (typeof CLOSED_FOR)[number];

export interface InputStats {
  readonly connections: number;
  readonly unfinishedBytes: number;
  readonly closed: Readonly<Record<ClosedFor, number>>;
}

/** The interval of the search for slow frames and for strangers without calls. */
const LOOK_MS = 1_000;

interface FromAddress {
  readonly address: string;
  connections: number;
  bytes: number;
  /** Accounts with an unfinished frame, in the order in which the frames began. */
  readonly unfinished: Set<InputAccount>;
}

export class InputBudget {
  readonly #limits: InputLimits;
  readonly #clock: Clock;
  readonly #log: RareLog;
  readonly #byAddress = new Map<string, FromAddress>();
  /** The same for all addresses. */
  readonly #unfinished = new Set<InputAccount>();
  readonly #closed: Record<ClosedFor, number>;
  /** IB6. */
  readonly #strangers: { readonly silent: Crowd<InputAccount>; readonly anonymous: Crowd<InputAccount> } | undefined;
  #connections = 0;
  #bytes = 0;
  #timer: Timer | undefined;

  constructor(limits: InputLimits, clock: Clock, logger: Pick<Logger, 'warn'> = silentLogger) {
    this.#limits = limits;
    this.#clock = clock;
    this.#log = new RareLog(clock, logger);
    this.#closed = nothingClosed();
    this.#strangers = limits.strangers === undefined ? undefined : this.#crowds(limits.strangers);
  }

  #crowds({ silentMax, silentPerAddressMax, anonymousMax, anonymousPerAddressMax }: StrangerLimits) {
    const sendAway = (account: InputAccount, of: 'address' | 'all'): void =>
      this.#close(account, account.address, of === 'all' ? 'strangers' : 'address_strangers');
    return {
      silent: new Crowd({ max: silentMax, perAddressMax: silentPerAddressMax }, sendAway),
      anonymous: new Crowd({ max: anonymousMax, perAddressMax: anonymousPerAddressMax }, sendAway),
    };
  }

  get stats(): InputStats {
    return { connections: this.#connections, unfinishedBytes: this.#bytes, closed: { ...this.#closed } };
  }

  /** Counts a connection; returns undefined if there are too many (IB1). `close` ends it at once. */
  admit(remoteAddress: string | undefined, close: () => void): InputAccount | undefined {
    const address = addressKey(remoteAddress);
    const from = this.#byAddress.get(address) ?? { address, connections: 0, bytes: 0, unfinished: new Set() };
    if (this.#strangers === undefined) {
      const { connectionsMax, connectionsPerAddressMax } = this.#limits;
      if (this.#connections >= connectionsMax) return this.#refuse('connections', from);
      if (from.connections >= connectionsPerAddressMax) return this.#refuse('address_connections', from);
    }
    this.#byAddress.set(address, from);
    this.#connections++;
    from.connections++;
    const account = new InputAccount(address, close, {
      holds: (bytes, isNewFrame) => this.#holds(from, account, bytes, isNewFrame),
      greeted: () => this.#greeted(account),
      called: () => this.#called(account),
      left: () => this.#left(from, account),
    });
    this.#strangers?.silent.add(account, this.#clock.monotonicMs());
    return account;
  }

  #refuse(reason: ClosedFor, { address }: FromAddress): undefined {
    this.#closed[reason]++;
    this.#tell(reason, address);
  }

  #holds(from: FromAddress, account: InputAccount, bytes: number, isNewFrame: boolean): void {
    const more = bytes - account.bytes;
    account.bytes = bytes;
    this.#bytes += more;
    from.bytes += more;
    if (bytes === 0 || isNewFrame) {
      this.#unfinished.delete(account);
      from.unfinished.delete(account);
    }
    if (bytes === 0) return;
    if (isNewFrame) account.begunMs = this.#clock.monotonicMs();
    this.#unfinished.add(account);
    from.unfinished.add(account);
    this.#watch();
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

  /** IB6. */
  #greeted(account: InputAccount): void {
    if (this.#strangers === undefined) return;
    this.#strangers.silent.remove(account);
    this.#strangers.anonymous.add(account, this.#clock.monotonicMs());
    this.#watch();
  }

  #called(account: InputAccount): void {
    this.#strangers?.anonymous.spoke(account, this.#clock.monotonicMs());
  }

  #watch(): void {
    this.#timer ??= this.#clock.setTimer(LOOK_MS, () => this.#look());
  }

  #look(): void {
    this.#timer = undefined;
    this.#closeSlow();
    this.#closeIdle();
    if (this.#unfinished.size > 0 || (this.#strangers?.anonymous.size ?? 0) > 0) this.#watch();
  }

  /** IB3. */
  #closeSlow(): void {
    const beforeMs = this.#clock.monotonicMs() - this.#limits.messageMs;
    for (const account of this.#unfinished) {
      if (account.begunMs > beforeMs) break;
      this.#close(account, 'one or more', 'slow_message');
    }
  }

  /** IB6. */
  #closeIdle(): void {
    const { strangers } = this.#limits;
    if (this.#strangers === undefined || strangers === undefined) return;
    const sinceMs = this.#clock.monotonicMs() - strangers.idleMs;
    for (const account of this.#strangers.anonymous.quietSince(sinceMs)) {
      this.#close(account, 'one or more', 'idle_stranger');
    }
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
    this.#strangers?.silent.remove(account);
    this.#strangers?.anonymous.remove(account);
    this.#connections--;
    if (--from.connections === 0) this.#byAddress.delete(from.address);
  }
}

function nothingClosed(): Record<ClosedFor, number> {
  return Object.fromEntries(CLOSED_FOR.map((reason) => [reason, 0])) as Record<ClosedFor, number>;
}

interface AccountPorts {
  holds(bytes: number, isNewFrame: boolean): void;
  greeted(): void;
  called(): void;
  left(): void;
}

/** The account of one connection. */
export class InputAccount {
  readonly address: string;
  readonly close: () => void;
  bytes = 0;
  begunMs = 0;
  spokeMs = 0;
  readonly #ports: AccountPorts;
  #frame = -1;
  #over = false;

  constructor(address: string, close: () => void, ports: AccountPorts) {
    this.address = address;
    this.close = close;
    this.#ports = ports;
  }

  /** The connection holds this many bytes of an unfinished frame, after `frames` complete ones. */
  unfinished(bytes: number, frames: number): void {
    if (this.#over || (bytes === 0 && this.bytes === 0)) return;
    const isNewFrame = frames !== this.#frame || this.bytes === 0;
    this.#frame = frames;
    this.#ports.holds(bytes, isNewFrame);
  }

  /** The connection has said hello, and the hello did not prove that it is a node's (IB6). */
  greeted(): void {
    if (!this.#over) this.#ports.greeted();
  }

  /** The connection sent a frame after its hello: it is not idle (IB6). */
  called(): void {
    if (!this.#over) this.#ports.called();
  }

  /** The connection is closed, or no longer counted (IB5). */
  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#ports.left();
  }
}
