export { openGroupLog } from './group-log.ts';
export {
  type GroupLogOptions,
  type GroupLogStats,
  type OpenGroupLogOptions,
  SEGMENT_BYTES_DEFAULT,
} from './group-log-options.ts';
export { LOG_FORMAT_VERSION, LogDamagedError, LogVersionError } from './log-format.ts';
