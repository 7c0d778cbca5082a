/** `remora/redlock`: the API of the library `redlock` on Remora, for programs that move. */

export type { RedlockAbortSignal, UsedLock } from './redlock/auto-extension.ts';
export type { ExecutionResult, ExecutionStats } from './redlock/execution-stats.ts';
export { Lock, Redlock, Redlock as default, type Routine } from './redlock/redlock.ts';
export { ExecutionError, ResourceLockedError } from './redlock/redlock-errors.ts';
export type { Settings } from './redlock/settings.ts';
