/** Every place where bytes or text from outside become values. A new decoder is a new entry here. */
import type { Target } from './target.ts';
import { BACKUP_TARGETS } from './targets/backup.ts';
import { COMMAND_LINE_TARGETS } from './targets/command-line.ts';
import { ETCD_SNAPSHOT_TARGETS } from './targets/etcd-snapshot.ts';
import { GATEWAY_TARGETS } from './targets/gateway.ts';
import { GRPC_SERVER_TARGETS } from './targets/grpc-server.ts';
import { LIVE_TARGETS } from './targets/live.ts';
import { LOG_TARGETS } from './targets/log.ts';
import { PROCESS_TARGETS } from './targets/process.ts';
import { PROTOCOL_TARGETS } from './targets/protocol.ts';
import { RAFT_TARGETS } from './targets/raft.ts';
import { STORAGE_TARGETS } from './targets/storage.ts';

export const TARGETS: readonly Target[] = [
  ...RAFT_TARGETS,
  ...PROTOCOL_TARGETS,
  ...LOG_TARGETS,
  ...STORAGE_TARGETS,
  ...GATEWAY_TARGETS,
  ...GRPC_SERVER_TARGETS,
  ...PROCESS_TARGETS,
  ...BACKUP_TARGETS,
  ...ETCD_SNAPSHOT_TARGETS,
  ...COMMAND_LINE_TARGETS,
  ...LIVE_TARGETS,
];
