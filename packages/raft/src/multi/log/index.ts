export { crc32 } from './checksum.ts';
export {
  type GroupLogOptions,
  type GroupLogStats,
  type OpenGroupLogOptions,
  openGroupLog,
  SEGMENT_BYTES_DEFAULT,
} from './group-log.ts';
export { LogDamagedError, LogVersionError } from './log-format.ts';
export { MemoryGroupLog } from './memory-group-log.ts';
