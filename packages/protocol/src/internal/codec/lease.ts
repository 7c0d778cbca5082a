/** Leases whose keys are in several ranges, and those that are changed: commands and their results. */
import type { Span } from '@remora/base';
import { unreachable } from '@remora/base';
import type { Condition } from '@remora/lock';
import type { Command, CommandResult } from '../command.ts';
import type { LeaseCommand, LeaseCommandResult } from '../lease-api.ts';
import { asBool, asBytes, asCount, asFields, asLease, asMs, invalid, leaseToWire } from './check.ts';

type LeaseChange = Extract<Command, { readonly type: 'leaseChange' }>;
type LeaseCheckpoint = Extract<Command, { readonly type: 'leaseCheckpoint' }>;
type LeaseChangeResult = Extract<CommandResult, { readonly type: 'leaseChange' }>;

/** Tags among those of commands and their results (command.ts). Part of the log format: append only. */
export const LEASE_COMMAND = { leaseRegister: 20, leaseRefer: 21, leaseEnd: 22, leaseSettle: 23 } as const;

/** The same of a change. */
export const LEASE_CHANGE = 24;
/** The same of a checkpoint. */
export const LEASE_CHECKPOINT = 25;

/** Of an entry with such a command: it has a format of its own (entry.ts). */
export function needsLeaseFormat(command: Command): boolean {
  switch (command.type) {
    case 'leaseGrant':
      return command.condition !== undefined;
    case 'leaseRevoke':
      return command.ifEmpty === true;
    case 'leaseChange':
    case 'leaseCheckpoint':
      return true;
    default:
      return Object.hasOwn(LEASE_COMMAND, command.type);
  }
}

export function isLeaseCommandTag(tag: unknown): boolean {
  return typeof tag === 'number' && tag >= LEASE_COMMAND.leaseRegister && tag <= LEASE_COMMAND.leaseSettle;
}

export function encodeSpan({ start, end }: Span): unknown[] {
  return [start, end];
}

export function decodeSpan(raw: unknown): Span {
  const f = asFields(raw, 2, 'span');
  return { start: asBytes(f[0], 'span.start'), end: asBytes(f[1], 'span.end') };
}

export function encodeLeaseChange({ id, incarnation, number, ttlMs, condition }: LeaseChange): unknown[] {
  return [LEASE_CHANGE, leaseToWire(id), incarnation, number, ttlMs, encodeCondition(condition)];
}

export function decodeLeaseChange(raw: readonly unknown[]): LeaseChange {
  const f = asFields(raw, 6, 'lease change');
  return {
    type: 'leaseChange',
    id: asLease(f[1], 'lease id'),
    incarnation: asCount(f[2], 'lease incarnation'),
    number: asCount(f[3], 'lease change number'),
    ttlMs: asMs(f[4], 'lease ttl'),
    ...decodeCondition(f[5]),
  };
}

export function encodeLeaseChangeResult({ ttlMs }: LeaseChangeResult): unknown[] {
  return [LEASE_CHANGE, ttlMs];
}

export function decodeLeaseChangeResult(raw: readonly unknown[]): LeaseChangeResult {
  return { type: 'leaseChange', ttlMs: asMs(asFields(raw, 2, 'lease change result')[1], 'lease ttl') };
}

export function encodeLeaseCheckpoint({ id, incarnation, term, remainingMs }: LeaseCheckpoint): unknown[] {
  return [LEASE_CHECKPOINT, leaseToWire(id), incarnation, term, remainingMs ?? null];
}

export function decodeLeaseCheckpoint(raw: readonly unknown[]): LeaseCheckpoint {
  const f = asFields(raw, 5, 'lease checkpoint');
  return {
    type: 'leaseCheckpoint',
    id: asLease(f[1], 'lease id'),
    incarnation: asCount(f[2], 'lease incarnation'),
    term: asCount(f[3], 'lease checkpoint term'),
    remainingMs: f[4] === null ? undefined : asMs(f[4], 'lease checkpoint remaining'),
  };
}

export function encodeCondition(condition: Condition | undefined): unknown {
  if (condition === undefined) return null;
  return [condition.heartbeatMs, condition.serverMisses, condition.holderMisses];
}

/** The field `condition`, to be spread into what has one. */
export function decodeCondition(raw: unknown): { readonly condition?: Condition } {
  if (raw === null) return {};
  const f = asFields(raw, 3, 'condition');
  return {
    condition: {
      heartbeatMs: asMs(f[0], 'condition.heartbeatMs'),
      serverMisses: asCount(f[1], 'condition.serverMisses'),
      holderMisses: asCount(f[2], 'condition.holderMisses'),
    },
  };
}

export function encodeLeaseCommand({ type, id, incarnation, span }: LeaseCommand): unknown[] {
  return [LEASE_COMMAND[type], leaseToWire(id), incarnation, encodeSpan(span)];
}

export function decodeLeaseCommand(raw: readonly unknown[]): LeaseCommand {
  const f = asFields(raw, 4, 'lease command');
  const lease = {
    id: asLease(f[1], 'lease id'),
    incarnation: asCount(f[2], 'lease incarnation'),
    span: decodeSpan(f[3]),
  };
  switch (f[0]) {
    case LEASE_COMMAND.leaseRegister:
      return { type: 'leaseRegister', ...lease };
    case LEASE_COMMAND.leaseRefer:
      return { type: 'leaseRefer', ...lease };
    case LEASE_COMMAND.leaseEnd:
      return { type: 'leaseEnd', ...lease };
    case LEASE_COMMAND.leaseSettle:
      return { type: 'leaseSettle', ...lease };
    default:
      throw invalid('lease command tag');
  }
}

export function encodeLeaseCommandResult(result: LeaseCommandResult): unknown[] {
  switch (result.type) {
    case 'leaseRegister':
      return [LEASE_COMMAND.leaseRegister, result.incarnation];
    case 'leaseEnd':
      return [LEASE_COMMAND.leaseEnd, encodeSpan(result.covered), result.more];
    case 'leaseRefer':
    case 'leaseSettle':
      return [LEASE_COMMAND[result.type]];
    default:
      return unreachable(result);
  }
}

export function decodeLeaseCommandResult(raw: readonly unknown[]): LeaseCommandResult {
  switch (raw[0]) {
    case LEASE_COMMAND.leaseRegister:
      return { type: 'leaseRegister', incarnation: asCount(asFields(raw, 2, 'registration')[1], 'lease incarnation') };
    case LEASE_COMMAND.leaseEnd: {
      const f = asFields(raw, 3, 'lease end');
      return { type: 'leaseEnd', covered: decodeSpan(f[1]), more: asBool(f[2], 'lease end more') };
    }
    case LEASE_COMMAND.leaseRefer:
      asFields(raw, 1, 'lease reference');
      return { type: 'leaseRefer' };
    case LEASE_COMMAND.leaseSettle:
      asFields(raw, 1, 'lease settlement');
      return { type: 'leaseSettle' };
    default:
      throw invalid('lease command result tag');
  }
}
