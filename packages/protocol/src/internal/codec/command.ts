import { unreachable } from '@remora/base';
import {
  checkLockCommand,
  decodeLockCommand,
  decodeLockResult,
  encodeLockCommand,
  encodeLockResult,
} from '@remora/lock';
import type { Command, CommandResult } from '../command.ts';
import {
  asCount,
  asDifference,
  asFields,
  asLease,
  asMs,
  asTextMap,
  invalid,
  leaseToWire,
  textMapToWire,
} from './check.ts';
import { decodeKvOp, decodeKvResult, decodeTxn, encodeKvOp, encodeKvResult, encodeTxn } from './kv.ts';
import {
  decodeCondition,
  decodeLeaseChange,
  decodeLeaseChangeResult,
  decodeLeaseCheckpoint,
  decodeLeaseCommand,
  decodeLeaseCommandResult,
  encodeCondition,
  encodeLeaseChange,
  encodeLeaseChangeResult,
  encodeLeaseCheckpoint,
  encodeLeaseCommand,
  encodeLeaseCommandResult,
  isLeaseCommandTag,
  LEASE_CHANGE,
  LEASE_CHECKPOINT,
} from './lease.ts';
import {
  decodeMergeCommand,
  decodeMergeResult,
  encodeMergeCommand,
  encodeMergeResult,
  isMergeCommandTag,
} from './merge.ts';
import { decodeSplit, decodeSplitResult, encodeSplit, encodeSplitResult } from './split.ts';
import {
  decodeTxnCommand,
  decodeTxnResult,
  encodeTxnCommand,
  encodeTxnResult,
  isTxnCommandTag,
} from './transaction.ts';

/**
 * Tags of commands; the same tag marks a command's result. Part of the log format: append only. 10–14: transaction.ts,
 * 15–18: merge.ts, 20–25: lease.ts.
 */
const COMMAND = {
  txn: 0,
  kv: 1,
  compact: 2,
  leaseGrant: 3,
  leaseRevoke: 4,
  leaseExpire: 5,
  lock: 6,
  noop: 7,
  split: 8,
  raiseRevision: 9,
  recount: 26,
} as const;

export function encodeCommand(command: Command): unknown[] {
  switch (command.type) {
    case 'lock':
      return [COMMAND.lock, encodeLockCommand(command.command)];
    case 'kv':
      return [COMMAND.kv, encodeKvOp(command.op)];
    case 'txn':
      return [COMMAND.txn, encodeTxn(command.txn)];
    case 'compact':
      return [COMMAND.compact, command.revision];
    case 'raiseRevision':
      return [COMMAND.raiseRevision, command.to];
    case 'recount':
      return [COMMAND.recount, command.version, command.index, command.keys, command.bytes];
    case 'leaseGrant':
      return encodeGrant(command);
    case 'leaseChange':
      return encodeLeaseChange(command);
    case 'leaseRevoke':
      return encodeRevoke(command);
    case 'leaseExpire':
      return [COMMAND.leaseExpire, command.id, command.incarnation, command.term];
    case 'leaseCheckpoint':
      return encodeLeaseCheckpoint(command);
    case 'leaseRegister':
    case 'leaseRefer':
    case 'leaseEnd':
    case 'leaseSettle':
      return encodeLeaseCommand(command);
    case 'split':
      return [COMMAND.split, encodeSplit(command)];
    case 'txnPrepare':
    case 'txnDecide':
    case 'txnResolve':
    case 'txnForget':
      return encodeTxnCommand(command);
    case 'seal':
    case 'merge':
    case 'refuseMerge':
    case 'unseal':
      return encodeMergeCommand(command);
    case 'noop':
      return [COMMAND.noop];
    default:
      return unreachable(command);
  }
}

/** Throws for a command that would not be decoded again: for those that have not been through the codec. */
export function checkCommand(command: Command): void {
  if (command.type === 'lock') checkLockCommand(command.command);
  else decodeCommand(encodeCommand(command));
}

export function decodeCommand(raw: unknown): Command {
  if (!Array.isArray(raw)) throw invalid('command');
  switch (raw[0]) {
    case COMMAND.lock:
      return { type: 'lock', command: decodeLockCommand(asFields(raw, 2, 'lock command')[1]) };
    case COMMAND.kv: {
      const op = decodeKvOp(asFields(raw, 2, 'kv command')[1]);
      if (op.type === 'txn') throw invalid('kv command holds a transaction');
      return { type: 'kv', op };
    }
    case COMMAND.txn:
      return { type: 'txn', txn: decodeTxn(asFields(raw, 2, 'txn command')[1]) };
    case COMMAND.compact:
      return { type: 'compact', revision: asCount(asFields(raw, 2, 'compact')[1], 'compact.revision') };
    case COMMAND.raiseRevision:
      return { type: 'raiseRevision', to: asCount(asFields(raw, 2, 'raised revision')[1], 'raised revision') };
    case COMMAND.recount: {
      const [, version, index, keys, bytes] = asFields(raw, 5, 'recount');
      return {
        type: 'recount',
        version: asCount(version, 'recount.version'),
        index: asCount(index, 'recount.index'),
        keys: asDifference(keys, 'recount.keys'),
        bytes: asDifference(bytes, 'recount.bytes'),
      };
    }
    case COMMAND.leaseGrant:
    case COMMAND.leaseRevoke:
    case COMMAND.leaseExpire:
      return decodeOwnLeaseCommand(raw);
    case LEASE_CHANGE:
      return decodeLeaseChange(raw);
    case LEASE_CHECKPOINT:
      return decodeLeaseCheckpoint(raw);
    case COMMAND.split:
      return decodeSplit(asFields(raw, 2, 'split command')[1]);
    case COMMAND.noop:
      asFields(raw, 1, 'noop');
      return { type: 'noop' };
    default:
      if (isTxnCommandTag(raw[0])) return decodeTxnCommand(raw);
      if (isMergeCommandTag(raw[0])) return decodeMergeCommand(raw);
      if (isLeaseCommandTag(raw[0])) return decodeLeaseCommand(raw);
      throw invalid('command tag');
  }
}

/** A lease without a condition is what it was before there were any. */
function encodeGrant({ id, ttlMs, attributes, condition }: Extract<Command, { type: 'leaseGrant' }>): unknown[] {
  const fields = [COMMAND.leaseGrant, leaseToWire(id), ttlMs, textMapToWire(attributes)];
  return condition === undefined ? fields : [...fields, encodeCondition(condition)];
}

/** Only an entry of its own format has the fourth field (`needsLeaseFormat`). */
function encodeRevoke({ id, incarnation, ifEmpty }: Extract<Command, { type: 'leaseRevoke' }>): unknown[] {
  const fields = [COMMAND.leaseRevoke, id, incarnation];
  return ifEmpty === true ? [...fields, true] : fields;
}

/** Of what a lease's home does by itself. */
function decodeOwnLeaseCommand(raw: readonly unknown[]): Command {
  const id = asLease(raw[1], 'lease id');
  if (raw[0] === COMMAND.leaseGrant) {
    const f = asFields(raw, raw.length === 5 ? 5 : 4, 'lease grant');
    return {
      type: 'leaseGrant',
      id,
      ttlMs: asMs(f[2], 'lease ttl'),
      attributes: asTextMap(f[3], 'lease attributes'),
      ...(f.length === 5 ? decodeCondition(f[4]) : {}),
    };
  }
  const incarnation = asCount(raw[2], 'lease incarnation');
  if (raw[0] === COMMAND.leaseRevoke) {
    if (raw.length === 4 && raw[3] === true) return { type: 'leaseRevoke', id, incarnation, ifEmpty: true };
    asFields(raw, 3, 'lease revoke');
    return { type: 'leaseRevoke', id, incarnation };
  }
  return { type: 'leaseExpire', id, incarnation, term: asCount(asFields(raw, 4, 'lease expire')[3], 'lease term') };
}

export function encodeCommandResult(result: CommandResult): unknown[] {
  switch (result.type) {
    case 'lock':
      return [COMMAND.lock, encodeLockResult(result.result)];
    case 'put':
    case 'delete':
    case 'range':
    case 'txn':
      return [COMMAND.kv, encodeKvResult(result)];
    case 'leaseGrant':
      return [COMMAND.leaseGrant, result.id, result.incarnation, result.ttlMs];
    case 'leaseChange':
      return encodeLeaseChangeResult(result);
    case 'leaseCheckpoint':
      return [LEASE_CHECKPOINT];
    case 'compact':
      return [COMMAND.compact];
    case 'raiseRevision':
      return [COMMAND.raiseRevision];
    case 'recount':
      return [COMMAND.recount];
    case 'leaseRevoke':
      return [COMMAND.leaseRevoke];
    case 'leaseRegister':
    case 'leaseRefer':
    case 'leaseEnd':
    case 'leaseSettle':
      return encodeLeaseCommandResult(result);
    case 'split':
      return [COMMAND.split, encodeSplitResult(result)];
    case 'txnPrepare':
    case 'txnDecide':
    case 'txnResolve':
    case 'txnForget':
    case 'txnPart':
      return encodeTxnResult(result, encodeCommandResult);
    case 'seal':
    case 'merge':
    case 'refuseMerge':
    case 'unseal':
      return encodeMergeResult(result);
    case 'noop':
      return [COMMAND.noop];
    default:
      return unreachable(result);
  }
}

export function decodeCommandResult(raw: unknown): CommandResult {
  if (!Array.isArray(raw)) throw invalid('command result');
  switch (raw[0]) {
    case COMMAND.lock:
      return { type: 'lock', result: decodeLockResult(asFields(raw, 2, 'lock result')[1]) };
    case COMMAND.kv:
      return decodeKvResult(asFields(raw, 2, 'kv result')[1]);
    case COMMAND.leaseGrant: {
      const f = asFields(raw, 4, 'lease grant result');
      return {
        type: 'leaseGrant',
        id: asLease(f[1], 'lease id'),
        incarnation: asCount(f[2], 'lease incarnation'),
        ttlMs: asMs(f[3], 'lease ttl'),
      };
    }
    case LEASE_CHANGE:
      return decodeLeaseChangeResult(raw);
    case LEASE_CHECKPOINT:
      asFields(raw, 1, 'lease checkpoint result');
      return { type: 'leaseCheckpoint' };
    case COMMAND.compact:
      asFields(raw, 1, 'compact result');
      return { type: 'compact' };
    case COMMAND.raiseRevision:
      asFields(raw, 1, 'raised revision result');
      return { type: 'raiseRevision' };
    case COMMAND.recount:
      asFields(raw, 1, 'recount result');
      return { type: 'recount' };
    case COMMAND.leaseRevoke:
      asFields(raw, 1, 'lease revoke result');
      return { type: 'leaseRevoke' };
    case COMMAND.split:
      return decodeSplitResult(asFields(raw, 2, 'split result')[1]);
    case COMMAND.noop:
      asFields(raw, 1, 'noop result');
      return { type: 'noop' };
    default:
      if (isTxnCommandTag(raw[0])) return decodeTxnResult(raw, (inner) => decodeCommandResult(inner));
      if (isMergeCommandTag(raw[0])) return decodeMergeResult(raw);
      if (isLeaseCommandTag(raw[0])) return decodeLeaseCommandResult(raw);
      throw invalid('command result tag');
  }
}
