import { assert, type Clock, type FrameStreamOptions } from '@remora/base';
import {
  SNAPSHOT_TRANSFER_DEFAULTS,
  type SnapshotTransferOptions,
  snapshotTransferOptions,
} from '../snapshot-transfer.ts';

/** How nodes communicate over sockets. */
export interface TransportOptions {
  /** The time limit from dialling until the peer has answered the handshake. */
  readonly connectTimeoutMs: number;
  /** Pause after a connection broke; doubles with each failure up to `backoffMaxMs`, less a random part. */
  readonly backoffMinMs: number;
  /** Bounds how long a restarted peer remains unnoticed, if it does not dial itself. */
  readonly backoffMaxMs: number;
  /** Pause after a peer refused this node, or answered with another identity. */
  readonly refusedBackoffMs: number;
  /** Bytes passed to a peer's stream and not yet taken by the socket; frames above it are dropped. */
  readonly queueBytesMax: number;
  /** A frame is closed after the message that brings it to this size. */
  readonly frameBytesMax: number;
  /** Largest message sent or accepted on a stream. Above the largest entry. */
  readonly messageBytesMax: number;
  /** A connection that was silent for this long is probed, and closed if the answer takes longer than the timeout. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** How snapshots travel. */
  readonly snapshots: SnapshotTransferOptions;
}

export const TRANSPORT_DEFAULTS: TransportOptions = Object.freeze({
  connectTimeoutMs: 1_000,
  backoffMinMs: 25,
  backoffMaxMs: 250,
  refusedBackoffMs: 2_000,
  queueBytesMax: 32 * 1024 * 1024,
  frameBytesMax: 1024 * 1024,
  messageBytesMax: 64 * 1024 * 1024,
  keepaliveMs: 1_000,
  keepaliveTimeoutMs: 2_000,
  snapshots: SNAPSHOT_TRANSFER_DEFAULTS,
});

/** Partial options: defaults replace missing ones. */
export type GivenTransportOptions = Partial<Omit<TransportOptions, 'snapshots'>> & {
  readonly snapshots?: Partial<SnapshotTransferOptions>;
};

/** Fills in the defaults and checks them. Throws `InvariantError` for options that cannot work. */
export function transportOptions(given: GivenTransportOptions = {}): TransportOptions {
  const snapshots = snapshotTransferOptions(given.snapshots);
  const options: TransportOptions = { ...TRANSPORT_DEFAULTS, ...given, snapshots };
  for (const [name, value] of Object.entries(options)) {
    if (typeof value !== 'number') continue;
    assert(Number.isFinite(value) && value > 0, `transport option ${name} must be above 0, not ${value}`);
  }
  assert(options.backoffMinMs <= options.backoffMaxMs, 'backoffMinMs must not be above backoffMaxMs');
  assert(options.frameBytesMax < options.messageBytesMax, 'frameBytesMax must be below messageBytesMax');
  return Object.freeze(options);
}

/** The options of the underlying streams. */
export function streamOptions(options: TransportOptions, clock: Clock): FrameStreamOptions {
  const { messageBytesMax, keepaliveMs, keepaliveTimeoutMs } = options;
  return { clock, frameBytesMax: messageBytesMax, probeMs: keepaliveMs, probeTimeoutMs: keepaliveTimeoutMs };
}
