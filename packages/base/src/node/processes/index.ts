export { commandOver, endCommand, processesOf } from './command-processes.ts';
export type { ProcessRow } from './listing.ts';
export { identityOf, isGone } from './process-identity.ts';
export {
  isInForeground,
  type ProcessTable,
  rowsOfPs,
  type SignalOutcome,
  systemProcessTable,
} from './process-table.ts';
