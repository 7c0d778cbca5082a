import type { Engine } from '@remora/base';
import { type Command, isTxnCommand } from '@remora/protocol';
import { type Prefetched, prefetchEach, prefetchRange, prefetchTxn, type RevisionBounds } from './kv/kv-read.ts';
import type { RangeFields } from './range-fields.ts';

/** Fetches the cold rows that executing a command may read; undefined if there are none (the hot path). */
export function prefetchCommand(
  engine: Engine,
  command: Command,
  state: RevisionBounds & Pick<RangeFields, 'transactions'>,
): Promise<Prefetched> | undefined {
  if (command.type === 'kv') return command.op.type === 'put' ? undefined : prefetchRange(engine, command.op, state);
  if (command.type === 'txn') return prefetchTxn(engine, command.txn, state);
  return isTxnCommand(command) ? prefetchEach(engine, state.transactions.evaluatedBy(command), state) : undefined;
}
