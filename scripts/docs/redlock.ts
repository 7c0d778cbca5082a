/** What the page of `remora/redlock` describes: its exports, the default by its name. */
export {
  ExecutionError,
  type ExecutionResult,
  type ExecutionStats,
  Lock,
  Redlock,
  type RedlockAbortSignal,
  ResourceLockedError,
  type Routine,
  type Settings,
  type UsedLock,
} from '../../packages/client/src/redlock.ts';
