/** Which leases a command needs, to decide what it does: those that keys or locks are to belong to. */
import { lockPrefix } from '@remora/lock';
import { type Command, type KvOp, kvRoutingKey, type Txn } from '@remora/protocol';

export interface LeaseUse {
  readonly id: bigint;
  /** 0: whichever there is. */
  readonly incarnation: number;
  /** Of the key or lock, where it is routed to. */
  readonly at: Uint8Array;
}

const NONE: readonly LeaseUse[] = [];

export function leaseUses(command: Command): readonly LeaseUse[] {
  switch (command.type) {
    case 'kv':
      return usesOf(command.op);
    case 'txn':
      return usesOfTxn(command.txn);
    case 'txnPrepare':
      return command.ops.flatMap(({ op }) => usesOf(op));
    case 'lock': {
      // A hold that is delayed belongs to no lease any more.
      if (!('owner' in command.command) || command.command.type === 'endDelay') return NONE;
      const { lock, owner } = command.command;
      const { lease, incarnation } = owner.session;
      return [{ id: lease, incarnation, at: lockPrefix(lock) }];
    }
    default:
      return NONE;
  }
}

/** Of both branches: which of them is taken is known only when it is applied. */
function usesOfTxn({ success, failure }: Txn): readonly LeaseUse[] {
  return [...success, ...failure].flatMap(usesOf);
}

function usesOf(op: KvOp): readonly LeaseUse[] {
  if (op.type === 'txn') return usesOfTxn(op.txn);
  if (op.type !== 'put' || op.lease === 0n) return NONE;
  return [{ id: op.lease, incarnation: 0, at: kvRoutingKey(op.key) }];
}
