import type { LockCommand } from '@remora/lock';
import type { Command, Query } from '@remora/protocol';

/**
 * How a request counts against the limit of requests per second.
 *  - `ordinary`: takes a token, and is refused when there is none.
 *  - `charged`: takes a token, and is never refused. It ends something (a lock, a place in a queue, a lease) and so
 *    lowers the load; refused, it would leave others waiting and heartbeats going. Watches are of this class as well.
 *  - `free`: takes none. It is answered from the leader's memory, changes nothing, and there are only as many of its
 *    kind as ordinary requests were let in before: without heartbeats a session ends, and its locks with it.
 */
export type RequestClass = 'ordinary' | 'charged' | 'free';

/** The others end something. */
const REFUSABLE_OF_LOCKS: readonly LockCommand['type'][] = ['acquire', 'setCapacity', 'setData', 'setDepth', 'forget'];

export function classOfCommand(command: Command): RequestClass {
  switch (command.type) {
    case 'kv':
    case 'txn':
    case 'compact':
    case 'raiseRevision':
    case 'leaseGrant':
    case 'leaseChange':
      return 'ordinary';
    case 'leaseRevoke':
      return 'charged';
    case 'lock':
      return REFUSABLE_OF_LOCKS.includes(command.command.type) ? 'ordinary' : 'charged';
    case 'recount':
    case 'leaseExpire':
    case 'leaseCheckpoint':
    case 'leaseRegister':
    case 'leaseRefer':
    case 'leaseEnd':
    case 'leaseSettle':
    case 'split':
    case 'txnPrepare':
    case 'txnDecide':
    case 'txnResolve':
    case 'txnForget':
    case 'seal':
    case 'merge':
    case 'refuseMerge':
    case 'unseal':
    case 'noop':
      // Only gateways and leaders of ranges send these.
      return 'ordinary';
  }
}

export function classOfQuery(query: Query): RequestClass {
  switch (query.type) {
    case 'range':
    case 'readTxn':
    case 'scan':
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
