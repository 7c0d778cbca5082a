import type { Command, Txn } from '@remora/protocol';

/** Whether a command may put values, which stay: other limits bound how much larger any other command makes a range. */
export function putsValues(command: Command): boolean {
  switch (command.type) {
    case 'kv':
      return command.op.type === 'put';
    case 'txn':
      return txnPuts(command.txn);
    case 'txnPrepare':
      return command.ops.some(({ op }) => op.type === 'put');
    default:
      return false;
  }
}

function txnPuts({ success, failure }: Txn): boolean {
  return [...success, ...failure].some((op) => op.type === 'put' || (op.type === 'txn' && txnPuts(op.txn)));
}
