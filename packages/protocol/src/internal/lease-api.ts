/**
 * How ranges keep a lease together whose keys and locks are in several of them (docs/decisions/0025). Its home is the
 * range that has its record. These commands are for ranges alone; their leaders propose them.
 */
import { bool, bytes, field, int64, struct, uint, union, variant } from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';

export const SpanKind = struct('span', {
  start: field(bytes, 'The first routing key.'),
  end: field(bytes, 'The routing key behind the last; empty: unbounded.'),
});

/** An id may be granted again, an incarnation never is. */
const LEASE = {
  id: field(int64, 'The id of the lease.'),
  incarnation: field(uint, 'Tells it from earlier leases of the same id.'),
};

/** What `owner` of a lease means, in commands, rows and answers. */
export const OWNER =
  'A session has one: the user who began it; empty if it was begun without a user. Absent: a lease of plain keys (LeaseGrant of etcd). Clients that begin a session send it empty; the gateway fills in the user.';
/** The owner of a session that was begun without a user. */
export const NO_OWNER = '';

export const LEASE_COMMANDS = {
  leaseRegister: variant(20, {
    ...LEASE,
    span: field(SpanKind, 'To the home: a range is about to hold keys or locks of the lease here. Incarnation 0: any.'),
  }),
  leaseRefer: variant(21, {
    ...LEASE,
    span: field(
      SpanKind,
      'In that range, once the home knows it: keys and locks here may belong to the lease from now on.',
    ),
  }),
  leaseEnd: variant(22, {
    ...LEASE,
    span: field(SpanKind, 'From the home, after the lease has ended: nothing here belongs to it any more.'),
  }),
  leaseSettle: variant(23, {
    ...LEASE,
    span: field(SpanKind, 'At the home: the range that has this span has done so.'),
  }),
};
export const LeaseCommand = union('lease command', 'type', LEASE_COMMANDS);
export type LeaseCommand = Infer<typeof LeaseCommand>;

export const LEASE_COMMAND_RESULTS = {
  leaseRegister: variant(20, { incarnation: field(uint, 'The incarnation of the lease.') }),
  leaseRefer: variant(21, {}),
  leaseEnd: variant(22, {
    covered: field(SpanKind, 'The part of the span that the range has.'),
    more: field(bool, 'Something in it still belongs to the lease; ask again.'),
  }),
  leaseSettle: variant(23, {}),
};
export const LeaseCommandResult = union('result of a lease command', 'type', LEASE_COMMAND_RESULTS);
export type LeaseCommandResult = Infer<typeof LeaseCommandResult>;
