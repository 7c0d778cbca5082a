export * from './backup/backup-format.ts';
export {
  BACKUP_FORMAT,
  BackupError,
  type BackupHeader,
  type BackupUser,
  type BackupUsers,
} from './backup/backup-frames.ts';
export * from './internal/admin-api.ts';
export * from './internal/auth-api.ts';
export { changedTwice } from './internal/changed-once.ts';
export * from './internal/codec/check.ts';
export * from './internal/codec/entry.ts';
export { packPlain } from './internal/codec/pack.ts';
export * from './internal/codec/parts.ts';
export * from './internal/codec/stored.ts';
export { type ItemPlace, StoredList } from './internal/codec/stored-list.ts';
export { endOfText, UnpackError, unpack } from './internal/codec/unpack.ts';
export * from './internal/codec/wire.ts';
export * from './internal/command.ts';
export * from './internal/command-result.ts';
export * from './internal/command-traits.ts';
export * from './internal/descriptor.ts';
export * from './internal/health/conditions.ts';
export * from './internal/health/health.ts';
export * from './internal/kv-shape.ts';
export * from './internal/kv-types.ts';
export * from './internal/lease-api.ts';
export * from './internal/lock-kinds.ts';
export * from './internal/master-api.ts';
export * from './internal/merge-api.ts';
export * from './internal/methods/admin-methods.ts';
export * from './internal/methods/auth-methods.ts';
export * from './internal/methods/merge-methods.ts';
export * from './internal/methods/node-methods.ts';
export * from './internal/methods/recovery-methods.ts';
export * from './internal/methods/steering-methods.ts';
export { type Named, type NamedNode, namedNode } from './internal/named-node.ts';
export * from './internal/query.ts';
export * from './internal/range-api.ts';
export * from './internal/recovery-api.ts';
export { requestTag } from './internal/request-tag.ts';
export * from './internal/revision-api.ts';
export * from './internal/routing-key-text.ts';
export * from './internal/session-api.ts';
export * from './internal/split-api.ts';
export { currentRanges, staleEpoch } from './internal/stale-epoch.ts';
export * from './internal/steering-api.ts';
export * from './internal/transaction-api.ts';
export * from './pipe/methods.ts';
export * from './pipe/node/pipe-link.ts';
export * from './rpc/access.ts';
export * from './rpc/caller.ts';
export * from './rpc/dialer.ts';
export { ANSWER, ASK, decodeFrame } from './rpc/frame.ts';
export * from './rpc/link.ts';
export * from './rpc/link-guard.ts';
export * from './rpc/local-channel.ts';
export * from './rpc/method.ts';
export * from './rpc/node/frame-link.ts';
export * from './rpc/node/socket-rpc.ts';
export * from './rpc/node-certificate.ts';
export * from './rpc/registry.ts';
export * from './rpc/rpc.ts';
export * from './rpc/server.ts';
export * as schema from './schema/index.ts';
