/**
 * Checks what is left when no client asks for anything any more: every node reports it in the counters of its metrics,
 * and its rows show it.
 *
 * Z1. Once all clients have gone and their sessions and leases have ended, no replica has any lease, lock, waiter or
 *     mark of one, no reference to a lease, and no part or record of a transaction over several ranges; the outcomes of
 *     their requests are forgotten.
 * Z2. No gateway has an open call or watch, no replica a proposal or an open query, no host a snapshot, a read or a
 *     hold on its log.
 * Z3. No connection with a client exists.
 */
import { LOCK_SPACE } from '@remora/protocol';
import type { NodeRoles } from '../../../../packages/cli/src/node/assemble.ts';
import { leaseSpaceSpan } from '../../../../packages/dataserver/src/state/keys.ts';

const LOCKS = { start: Buffer.from([LOCK_SPACE]), end: Buffer.from([LOCK_SPACE + 1]) };

export interface Rest {
  readonly nodes: readonly { readonly id: number; readonly roles: NodeRoles | undefined }[];
  /** Connections with clients. */
  readonly clientLinks: number;
}

/** Returns what is left, in words; empty if nothing is. */
export function leftovers({ nodes, clientLinks }: Rest): string {
  const found = nodes.flatMap(({ id, roles }) => {
    if (roles === undefined) return [`node ${id} does not run`];
    const left = Object.entries(countsOf(roles)).filter(([, count]) => count > 0);
    return left.map(([what, count]) => `node ${id}: ${count} ${what}`);
  });
  if (clientLinks > 0) found.push(`${clientLinks} links of clients`);
  return found.join(', ');
}

function countsOf({ host, engine, master, store, inFlight }: NodeRoles): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {
    ...host.inFlight(),
    ...inFlight(),
    'proposals of the master': master?.proposalsInFlight ?? 0,
    'rows of leases': engine.scanResident(leaseSpaceSpan()).length,
    'rows of locks': engine.scanResident(LOCKS).length,
  };
  for (const replica of store?.replicas() ?? []) {
    const { state, rangeId } = replica;
    const own = {
      ...replica.inFlight(),
      leases: state.leases.size,
      'leases that end': [...state.leases.allEnding()].length,
      'references to leases': state.references.size,
      outcomes: state.outcomes.count,
    };
    for (const [what, count] of Object.entries(own)) counts[`${what} of range ${rangeId}`] = count;
  }
  return counts;
}
