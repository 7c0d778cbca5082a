import type { Engine } from '@remora/base';
import { type Command, isTxnCommand, type TxnCommand } from '@remora/protocol';
import { type Prefetched, prefetchEach, prefetchRange, prefetchTxn, type RevisionBounds } from './kv/kv-read.ts';
import type { RangeFields } from './range-fields.ts';

/** Fetches the cold rows that executing a command may read; undefined if there are none (the hot path). */
export function prefetchCommand(
  engine: Engine,
  command: Command,
  state: ReadableState,
): Promise<Prefetched> | undefined {
  if (command.type === 'kv') {
    return command.op.type === 'put' ? undefined : prefetchRange(engine, command.op, readBounds(state));
  }
  if (command.type === 'txn') return prefetchTxn(engine, command.txn, readBounds(state));
  if (!isTxnCommand(command)) return undefined;
  return prefetchEach(engine, state.transactions.evaluatedBy(command), readBounds(state, commitRevision(command)));
}

type ReadableState = RevisionBounds & Pick<RangeFields, 'transactions'> & { readonly readableRevision: number };

/** A commit reads below its own revision: its prepare has checked that (PE2 of part-execution.ts). */
function readBounds({ readableRevision, compactRevision }: ReadableState, commit = 0): RevisionBounds {
  return { revision: Math.max(readableRevision, commit), compactRevision };
}

function commitRevision(command: TxnCommand): number | undefined {
  if (command.type === 'txnDecide') return command.decision.type === 'commit' ? command.decision.revision : undefined;
  return command.type === 'txnResolve' && command.resolution.type === 'commit'
    ? command.resolution.revision
    : undefined;
}
