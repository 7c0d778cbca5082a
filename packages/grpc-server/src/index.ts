export type { PendingTimer, Timers } from './timers.ts';
