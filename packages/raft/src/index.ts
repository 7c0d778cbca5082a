export * from './core/config.ts';
export * from './core/membership/conf-change.ts';
export { ConfChangeError, decodeConfChange, encodeConfChange } from './core/membership/conf-change-codec.ts';
export { confOf, isJoint, isMember, isVoter, leaveJoint, membersOf, votersOf } from './core/membership/membership.ts';
export * from './core/raft.ts';
export { type TraceEvent, type TraceEventName, type TraceSink, traceLine } from './core/trace.ts';
export * from './core/types.ts';
export { StateLostError } from './multi/host/group/recovery.ts';
export { createRaftHost, type HostTimes, type NodeRaftHost, type RaftHostOptions } from './multi/host/host.ts';
export { HOST_DEFAULTS, type HostOptions, hostOptions } from './multi/host/options.ts';
export type { HostInFlight, HostStats } from './multi/host/stats.ts';
export * from './multi/host-api.ts';
export * from './multi/log/index.ts';
export * from './multi/ports.ts';
export type { FrameTraffic } from './multi/transport/node/frame-peer.ts';
export type { PeerIdentity, PeerRefusal, VerifyPeer } from './multi/transport/node/handshake.ts';
export {
  createSocketTransport,
  type SocketTransport,
  type SocketTransportConfig,
} from './multi/transport/node/socket-transport.ts';
export {
  type GivenTransportOptions,
  TRANSPORT_DEFAULTS,
  type TransportOptions,
  transportOptions,
} from './multi/transport/node/transport-options.ts';
export {
  isSnapshotBusy,
  SNAPSHOT_TRANSFER_DEFAULTS,
  type SnapshotTraffic,
  type SnapshotTransferOptions,
  snapshotBusy,
  snapshotTransferOptions,
} from './multi/transport/snapshot-transfer.ts';
