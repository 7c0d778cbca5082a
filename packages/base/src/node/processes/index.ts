export { commandOver, endCommand, processesOf } from './command-processes.ts';
export { identityOf, isGone } from './process-identity.ts';
export {
  isInForeground,
  type ProcessRow,
  type ProcessTable,
  rowsOfPs,
  type SignalOutcome,
  systemProcessTable,
} from './process-table.ts';
