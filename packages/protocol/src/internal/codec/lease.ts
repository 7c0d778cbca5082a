/** Leases whose keys are in several ranges: commands and their results. */
import type { Span } from '@remora/base';
import { unreachable } from '@remora/base';
import type { LeaseCommand, LeaseCommandResult } from '../lease-api.ts';
import { asBool, asBytes, asCount, asFields, asLease, invalid, leaseToWire } from './check.ts';

/** Tags among those of commands and their results (command.ts). Part of the log format: append only. */
export const LEASE_COMMAND = { leaseRegister: 20, leaseRefer: 21, leaseEnd: 22, leaseSettle: 23 } as const;

/** Of an entry with such a command: it has a format of its own (entry.ts). */
export function isLeaseCommand(command: { readonly type: string }): command is LeaseCommand {
  return Object.hasOwn(LEASE_COMMAND, command.type);
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
