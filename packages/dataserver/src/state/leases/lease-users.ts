/** The leases that decide what a command does: those that its keys or locks are attached to. */
import { lockPrefix } from '@remora/lock';
import { type Command, type KvOp, kvRoutingKey, type Txn } from '@remora/protocol';

export interface LeaseUse {
  readonly id: bigint;
  /** 0: any incarnation. */
  readonly incarnation: number;
  /** The routing key of the key or lock. */
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
      // A delayed hold no longer belongs to a lease.
      if (!('owner' in command.command) || command.command.type === 'endDelay') return NONE;
      const { lock, owner } = command.command;
      const { lease, incarnation } = owner.session;
      return [{ id: lease, incarnation, at: lockPrefix(lock) }];
    }
    default:
      return NONE;
  }
}

/** Uses of both branches: apply decides which of them is taken. */
function usesOfTxn({ success, failure }: Txn): readonly LeaseUse[] {
  return [...success, ...failure].flatMap(usesOf);
}

function usesOf(op: KvOp): readonly LeaseUse[] {
  if (op.type === 'txn') return usesOfTxn(op.txn);
  if (op.type !== 'put' || op.lease === 0n) return NONE;
  return [{ id: op.lease, incarnation: 0, at: kvRoutingKey(op.key) }];
}
