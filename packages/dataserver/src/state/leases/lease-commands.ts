/**
 * The effect of commands about leases on a range, whether it is the lease's home or another range with keys of the
 * lease (docs/decisions/0025).
 *
 * LC1. The end of a lease deletes its keys and locks in the home in the same entry, up to END_ROWS_MAX of them. If the
 *      lease has more there, which makes the home one of its spans, or has other spans, it stays in the state *ending*,
 *      and its leader notifies those spans (range/leases/lease-endings.ts).
 * LC2. When the end reaches a range, the reference is uncovered first, so that nothing new can belong to the lease.
 *      Then each entry deletes at most END_ROWS_MAX keys and locks, and the sender asks again while there are more.
 * LC3. All of these commands may arrive twice, and late: they name the incarnation, and do not affect any other.
 * LC4. The client numbers the changes of its lease, and a late earlier change does not undo a later one. A change does
 *      not renew the lease; a heartbeat reports the TTL of that moment (session.ts of the client, S5).
 * LC5. A lease that was seen to be empty (range/leases/empty-leases.ts) is ended with `ifEmpty`: on apply, its home
 *      checks again that no key, no lock and no prepared write in the home belongs to the lease. What was attached
 *      since then keeps the lease alive, because the log orders both.
 */
import { assert, ServiceError, type Span } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import type { Command, CommandResult, LeaseCommand } from '@remora/protocol';
import { attachableSpan, intersection } from '../bounds.ts';
import type { SessionEnd } from '../effects.ts';
import type { LockCommands } from '../locks/lock-commands.ts';
import type { RangeFields, RangeLeases, RangeShape } from '../range-fields.ts';
import type { Attached } from './attachments.ts';
import type { LeaseEndingCommand } from './lease-ending.ts';
import { endsEmpty, type Lease } from './leases.ts';

type CommandOf<T extends Command['type']> = Extract<Command, { readonly type: T }>;
export type AnyLeaseCommand =
  | CommandOf<'leaseGrant' | 'leaseChange' | 'leaseRevoke' | 'leaseExpire' | 'leaseCheckpoint'>
  | LeaseCommand;

/** The part of a range's state that these commands use. */
export interface LeaseHolder extends LeaseSpans {
  readonly transactions: Pick<RangeFields['transactions'], 'leasesWithin'>;
  /** The revision of the command's changes. */
  readonly nextRevision: number;
  revision: number;
  readonly locks: Pick<LockCommands, 'release'>;
  onLeaseGranted(lease: Lease): void;
  onLeaseEnded(id: bigint, how: SessionEnd): void;
}

/** Where the keys and locks of leases are in a range. */
type LeaseSpans = Readonly<RangeLeases & Pick<RangeShape, 'bounds'>>;

/**
 * The largest number of keys and locks that one entry takes from a lease: every replica, and every waiting client, is
 * held up meanwhile. A thousand of them took 7 to 20 ms of CPU time, and 50 ms before the code was compiled.
 */
const END_ROWS_MAX = 250;

export function applyLeaseCommand(range: LeaseHolder, command: AnyLeaseCommand, term: number): CommandResult {
  switch (command.type) {
    case 'leaseGrant':
      return grant(range, command);
    case 'leaseChange':
      return change(range, command);
    case 'leaseRevoke':
      if (command.ifEmpty === true) requireEmpty(range, command);
      return revoke(range, command, 'closed');
    case 'leaseExpire':
      // A new term has begun since: its leader has given the lease more time (traps 17, 18).
      if (command.term !== term) throw new ServiceError('NOT_LEADER', 'the expiry was proposed in an earlier term');
      return revoke(range, command, 'expired');
    case 'leaseCheckpoint':
      // Likewise: its leader may have acknowledged heartbeats.
      if (command.term !== term) throw new ServiceError('NOT_LEADER', 'this is what was left in an earlier term');
      range.leases.checkpoint(living(range, command.id, command.incarnation).id, command.remainingMs);
      return { type: 'leaseCheckpoint' };
    case 'leaseRegister':
      return register(range, command);
    case 'leaseRefer':
      return refer(range, command);
    case 'leaseEnd':
      return end(range, command);
    case 'leaseSettle':
      if (range.leases.ending(command.id)?.incarnation === command.incarnation) {
        range.leases.settle(command.id, command.span);
      }
      return { type: 'leaseSettle' };
  }
}

function grant(range: LeaseHolder, command: CommandOf<'leaseGrant'>): CommandResult {
  const { id, ttlMs, attributes, condition, owner } = command;
  // The incarnation is a revision of its own, so no two grants of one id are ever confused.
  const terms = { ttlMs, change: 0, ...(condition === undefined ? {} : { condition }) };
  const whose = owner === undefined ? {} : { owner };
  const lease: Lease = { id, incarnation: range.nextRevision, attributes, spans: [], ...whose, ...terms };
  range.leases.grant(lease);
  range.revision = lease.incarnation;
  range.onLeaseGranted(lease);
  return { type: 'leaseGrant', id, incarnation: lease.incarnation, ttlMs };
}

/** LC4. A repeated change returns the same answer. */
function change(range: LeaseHolder, command: CommandOf<'leaseChange'>): CommandResult {
  const { id, incarnation, number, ttlMs, condition } = command;
  const lease = living(range, id, incarnation);
  if (number < lease.change) throw new ServiceError('INVALID_ARGUMENT', 'the session was changed otherwise since');
  range.leases.change(id, { change: number, ttlMs, ...(condition === undefined ? {} : { condition }) });
  return { type: 'leaseChange', ttlMs };
}

/**
 * LC1. In one step the lease dies, its keys are deleted, its locks are released and granted onward, and its waiters
 *      leave (design §9).
 */
function revoke(
  range: LeaseHolder,
  { id, incarnation }: CommandOf<'leaseRevoke' | 'leaseExpire'>,
  how: SessionEnd,
): CommandResult {
  const lease = living(range, id, incarnation);
  const { leases } = range;
  const here = attachableSpan(range.bounds);
  const revision = range.nextRevision;
  leases.beginEnd(id);
  range.locks.release({ lease: id, incarnation: lease.incarnation }, leftInHome(range, id, END_ROWS_MAX));
  // The end has a revision even if nothing belonged to the lease, like the grant.
  range.revision = revision;
  if (here !== undefined && isLeft(range, id)) leases.addSpan(id, here);
  leases.settle(id, undefined);
  range.onLeaseEnded(id, how);
  return { type: 'leaseRevoke' };
}

/** LC5. */
function requireEmpty(range: LeaseHolder, { id, incarnation }: CommandOf<'leaseRevoke'>): void {
  const lease = living(range, id, incarnation);
  if (!endsEmpty(lease)) throw new ServiceError('INVALID_ARGUMENT', `lease ${id} does not end when it is empty`);
  if (isLeft(range, id)) throw new ServiceError('INVALID_ARGUMENT', `lease ${id} is not empty`);
}

/** Whether a key, a lock or a prepared write in its home belongs to a lease. */
function isLeft(range: LeaseHolder, id: bigint): boolean {
  const here = attachableSpan(range.bounds);
  return any(leftInHome(range, id, 1)) || (here !== undefined && range.transactions.leasesWithin(here).has(id));
}

const NOTHING: Attached = { keys: [], locks: [] };

function any({ keys, locks }: Attached): boolean {
  return keys.length + locks.length > 0;
}

function living({ leases }: LeaseHolder, id: bigint, incarnation: number): Lease {
  const lease = leases.get(id);
  if (lease === undefined || (incarnation !== 0 && lease.incarnation !== incarnation)) {
    throw new ServiceError('LEASE_NOT_FOUND', `lease ${id} does not exist or has expired`);
  }
  return lease;
}

function register(range: LeaseHolder, { id, incarnation, span }: CommandOf<'leaseRegister'>): CommandResult {
  const lease = living(range, id, incarnation);
  range.leases.addSpan(id, span);
  return { type: 'leaseRegister', incarnation: lease.incarnation };
}

function refer(range: LeaseHolder, { id, incarnation, span }: CommandOf<'leaseRefer'>): CommandResult {
  const known = range.leaseOwnership.incarnationOf(id);
  const isAnother = known !== 0 && known !== incarnation;
  if (isAnother || !range.references.add(id, incarnation, span)) {
    throw new ServiceError('UNAVAILABLE', `an earlier lease ${id} has something here yet; try again later`); // BL2
  }
  return { type: 'leaseRefer' };
}

/**
 * LC2. In the home itself, this deletes what did not go with the lease (LC1), or came from writes that were prepared
 *      when it ended.
 */
function end(range: LeaseHolder, { id, incarnation, span }: CommandOf<'leaseEnd'>): CommandResult {
  const { leases, references, transactions } = range;
  const covered = coveredBy(range, span);
  assert(covered !== undefined, 'the end of a lease reaches the range that has the beginning of the span');
  const session = { lease: id, incarnation };
  const isHome = leases.ending(id)?.incarnation === incarnation;
  references.uncover(id, incarnation, covered);
  const isReferred = references.get(id)?.incarnation === incarnation;
  const left = (limit: number): Attached => leftWithin(range, session, covered, limit);
  range.locks.release(session, left(END_ROWS_MAX));
  const more = any(left(1)) || ((isHome || isReferred) && transactions.leasesWithin(covered).has(id));
  if (!more) references.tidy(id);
  return { type: 'leaseEnd', covered, more };
}

/** The plain keys and locks that a command takes from its lease; it touches no others. */
export function takenBy(range: LeaseSpans, command: LeaseEndingCommand): Attached {
  if (command.type !== 'leaseEnd') return leftInHome(range, command.id, END_ROWS_MAX);
  const { id, incarnation, span } = command;
  const covered = coveredBy(range, span);
  return covered === undefined ? NOTHING : leftWithin(range, { lease: id, incarnation }, covered, END_ROWS_MAX);
}

function leftInHome({ bounds, leaseOwnership }: LeaseSpans, id: bigint, limit: number): Attached {
  const here = attachableSpan(bounds);
  return here === undefined ? NOTHING : leaseOwnership.ofHome(id, here, limit);
}

/** The part of the command's span that lies in this range. */
function coveredBy({ bounds }: Pick<LeaseHolder, 'bounds'>, span: Span): Span | undefined {
  const here = attachableSpan(bounds);
  return here && intersection(here, span);
}

function leftWithin(
  { leases, references, leaseOwnership }: LeaseSpans,
  { lease: id, incarnation }: SessionRef,
  covered: Span,
  limit: number,
): Attached {
  const isHome = leases.ending(id)?.incarnation === incarnation;
  const own = isHome ? leaseOwnership.ofHome(id, covered, limit) : NOTHING;
  const isReferred = references.get(id)?.incarnation === incarnation;
  return !any(own) && isReferred ? leaseOwnership.ofReference(id, covered, limit) : own;
}
