/**
 * What commands and queries need: one place for all doors. The switches are exhaustive, so a new command does not
 * compile until somebody has said who may send it.
 */
import type { Command, Query } from '@remora/protocol';
import { needOfCompare, needsOfOp, needsOfTxn } from './kv-needs.ts';
import { needOfSession, needsOfLockCommand, needsOfLockQuery } from './lock-needs.ts';
import type { Need } from './need.ts';

/** A lease may have no keys, and so need nothing else. */
const ANY_USER: readonly Need[] = [{ type: 'anyUser' }];

export function needsOfCommand(command: Command): readonly Need[] {
  switch (command.type) {
    case 'kv':
      return needsOfOp(command.op);
    case 'txn':
      return needsOfTxn(command.txn);
    case 'lock':
      return needsOfLockCommand(command.command);
    case 'leaseGrant':
      return ANY_USER;
    case 'leaseChange':
      return [...ANY_USER, needOfSession('change', { lease: command.id, incarnation: command.incarnation })];
    case 'leaseRevoke':
      return [...ANY_USER, { type: 'lease', use: 'end', lease: command.id, incarnation: command.incarnation }];
    case 'compact':
      return root('compact');
    case 'raiseRevision':
      return root('restore a backup');
    case 'txnPrepare':
      return [...command.compares.map(needOfCompare), ...command.ops.flatMap(({ op }) => needsOfOp(op))];
    // The gateway has checked the whole transaction, and each range its part, when it was prepared.
    case 'txnDecide':
    case 'txnResolve':
    case 'txnForget':
      return ANY_USER;
    case 'leaseExpire':
    case 'leaseEnd':
    case 'leaseCheckpoint':
    case 'leaseRegister':
    case 'leaseRefer':
    case 'leaseSettle':
    case 'recount':
    case 'split':
    case 'seal':
    case 'merge':
    case 'refuseMerge':
    case 'unseal':
    case 'noop':
      return root(`send ${command.type}`);
  }
}

export function needsOfQuery(query: Query): readonly Need[] {
  switch (query.type) {
    case 'range':
      return needsOfOp(query.op);
    case 'readTxn':
      return needsOfTxn(query.txn);
    case 'scan':
      return [{ type: 'keys', access: 'read', key: query.key, end: query.end }];
    case 'history':
      return [{ type: 'keys', access: 'read', key: query.key }];
    case 'lock':
      return needsOfLockQuery(query.query);
    case 'lockAwait':
      return [{ type: 'lock', verb: 'acquire', ...query.lock }, needOfSession('use', query.owner.session)];
    case 'grantEnd':
      return [{ type: 'lock', verb: 'read', ...query.lock }];
    case 'leaseKeepAlive':
      return [...ANY_USER, { type: 'lease', use: 'renew', lease: query.id, incarnation: query.incarnation }];
    case 'leaseTimeToLive':
      return query.keys ? [...ANY_USER, { type: 'leaseKeys', lease: query.id }] : ANY_USER;
    case 'leaseKeys':
      return [{ type: 'leaseKeys', lease: query.id }];
    case 'session':
      return [...ANY_USER, needOfSession('show', { lease: query.id, incarnation: query.incarnation })];
    case 'sessions':
      return [{ type: 'sessions', owner: query.owner }];
    case 'leases':
      return root('list the leases of all users');
    case 'closedRevision':
    case 'status':
    case 'txnStatus':
      return ANY_USER;
  }
}

function root(what: string): readonly Need[] {
  return [{ type: 'root', what }];
}
