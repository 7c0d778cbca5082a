import type { LockCommand } from '@remora/lock';
import { COMMAND_TRAITS, type Command, type Query, type RequestClass } from '@remora/protocol';

/** Commands on locks that are refused above the limit; the others end something. */
const REFUSABLE_OF_LOCKS: readonly LockCommand['type'][] = ['acquire', 'setCapacity', 'setData', 'setDepth', 'forget'];

export function classOfCommand(command: Command): RequestClass {
  if (command.type !== 'lock') return COMMAND_TRAITS[command.type].admission;
  return REFUSABLE_OF_LOCKS.includes(command.command.type) ? 'ordinary' : 'charged';
}

export function classOfQuery(query: Query): RequestClass {
  switch (query.type) {
    case 'range':
    case 'readTxn':
    case 'scan':
    case 'history':
    case 'lock':
    case 'leaseTimeToLive':
    case 'leaseKeys':
    case 'leases':
    case 'sessions':
    case 'session':
    case 'closedRevision':
    case 'txnStatus':
      return 'ordinary';
    case 'leaseKeepAlive':
    case 'lockAwait':
    case 'grantEnd':
    case 'status':
      return 'free';
  }
}
