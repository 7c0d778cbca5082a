import type { Span } from '@remora/base';

/** Which lease: an id may be granted again, its incarnation never is. */
interface LeaseRef {
  readonly id: bigint;
  readonly incarnation: number;
}

/**
 * How ranges keep a lease together whose keys and locks are in several of them (docs/decisions/0025). Its home is the range
 * that has its record. All of these are for ranges alone; their leaders propose them.
 */
export type LeaseCommand =
  /** To the home: a range is about to hold keys or locks of the lease in this span. `incarnation` 0: of whichever is there. */
  | ({ readonly type: 'leaseRegister'; readonly span: Span } & LeaseRef)
  /** In that range, once the home has it: keys and locks in this span may belong to the lease from now on. */
  | ({ readonly type: 'leaseRefer'; readonly span: Span } & LeaseRef)
  /** From the home, after the lease has ended: nothing in this span belongs to it any more. */
  | ({ readonly type: 'leaseEnd'; readonly span: Span } & LeaseRef)
  /** At the home: the range that has this span has done so. */
  | ({ readonly type: 'leaseSettle'; readonly span: Span } & LeaseRef);

export type LeaseCommandResult =
  | { readonly type: 'leaseRegister'; readonly incarnation: number }
  | { readonly type: 'leaseRefer' }
  /** `covered`: the part of the span that the range has. `more`: something in it belongs to the lease yet; ask again. */
  | { readonly type: 'leaseEnd'; readonly covered: Span; readonly more: boolean }
  | { readonly type: 'leaseSettle' };
