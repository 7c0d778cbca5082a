import type { ChannelOptions, ServerOptions } from '@grpc/grpc-js';
import { assert } from '@remora/base';
import {
  SNAPSHOT_TRANSFER_DEFAULTS,
  type SnapshotTransferOptions,
  snapshotTransferOptions,
} from '../snapshot-transfer.ts';

/** How nodes talk to each other over gRPC. */
export interface GrpcTransportOptions {
  /** From dialling until the peer has answered the handshake. */
  readonly connectTimeoutMs: number;
  /** Pause after a connection broke; doubles with each failure up to `backoffMaxMs`, less a random part. */
  readonly backoffMinMs: number;
  /** Bounds how long a restarted peer stays unnoticed, when it does not dial by itself. */
  readonly backoffMaxMs: number;
  /** Pause after a peer refused us, or answered as somebody else. */
  readonly refusedBackoffMs: number;
  /** Bytes handed to a peer's stream and not yet taken by the socket; frames above it are dropped. */
  readonly queueBytesMax: number;
  /** A frame is cut after the message that brings it to this size. */
  readonly frameBytesMax: number;
  /** Largest message that is taken from or given to a stream. Above the largest entry. */
  readonly messageBytesMax: number;
  /** A silent connection is probed after this time, and closed if the answer takes longer than the timeout. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** How snapshots travel. */
  readonly snapshots: SnapshotTransferOptions;
}

export const GRPC_TRANSPORT_DEFAULTS: GrpcTransportOptions = Object.freeze({
  connectTimeoutMs: 1_000,
  backoffMinMs: 25,
  backoffMaxMs: 250,
  refusedBackoffMs: 2_000,
  queueBytesMax: 32 * 1024 * 1024,
  frameBytesMax: 1024 * 1024,
  messageBytesMax: 64 * 1024 * 1024,
  keepaliveMs: 2_000,
  keepaliveTimeoutMs: 2_000,
  snapshots: SNAPSHOT_TRANSFER_DEFAULTS,
});

/** What may be given: defaults stand in for what is missing. */
export type GivenGrpcTransportOptions = Partial<Omit<GrpcTransportOptions, 'snapshots'>> & {
  readonly snapshots?: Partial<SnapshotTransferOptions>;
};

/** Fills in the defaults and checks them. Throws `InvariantError` for options that cannot work. */
export function grpcTransportOptions(given: GivenGrpcTransportOptions = {}): GrpcTransportOptions {
  const snapshots = snapshotTransferOptions(given.snapshots);
  const options: GrpcTransportOptions = { ...GRPC_TRANSPORT_DEFAULTS, ...given, snapshots };
  for (const [name, value] of Object.entries(options)) {
    if (typeof value !== 'number') continue;
    assert(Number.isFinite(value) && value > 0, `transport option ${name} must be above 0: ${value}`);
  }
  assert(options.backoffMinMs <= options.backoffMaxMs, 'backoffMinMs must not be above backoffMaxMs');
  assert(options.frameBytesMax < options.messageBytesMax, 'frameBytesMax must be below messageBytesMax');
  return Object.freeze(options);
}

/**
 * Options of a channel to a peer. Each channel is used for one connection and then thrown away, so that the
 * library's own back-off never stands between us and a peer that is back.
 */
export function channelOptions(options: GrpcTransportOptions): ChannelOptions {
  return {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_http_proxy': 0,
    'grpc.enable_channelz': 0,
    // Retries would buffer what is written to a stream.
    'grpc.enable_retries': 0,
    'grpc.service_config_disable_resolution': 1,
    'grpc.max_receive_message_length': options.messageBytesMax,
    'grpc.max_send_message_length': options.messageBytesMax,
    'grpc.keepalive_time_ms': options.keepaliveMs,
    'grpc.keepalive_timeout_ms': options.keepaliveTimeoutMs,
    'grpc.initial_reconnect_backoff_ms': options.backoffMinMs,
    'grpc.max_reconnect_backoff_ms': options.backoffMaxMs,
  };
}

/** What the server that carries the transport's service needs; other services on it may ask for more. */
export function grpcServerOptions(given: GivenGrpcTransportOptions = {}): ServerOptions {
  const options = grpcTransportOptions(given);
  return {
    'grpc.max_receive_message_length': options.messageBytesMax,
    'grpc.max_send_message_length': options.messageBytesMax,
    'grpc.keepalive_time_ms': options.keepaliveMs,
    'grpc.keepalive_timeout_ms': options.keepaliveTimeoutMs,
    'grpc.enable_channelz': 0,
  };
}
