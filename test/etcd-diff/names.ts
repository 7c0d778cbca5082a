import type { RevisionMap } from './judge/revision-map.ts';
import { isChosenByServer, leaseId } from './requests/keys.ts';
import type { GrantStep, Lease, Revision } from './requests/requests.ts';
import type { Names } from './servers/server.ts';

/** The id of a lease that the server would have chosen, before it has. */
const UNKNOWN_LEASE = 900_000n;

/** What one side calls revisions and leases, as the run goes on. */
export class SideNames implements Names {
  readonly #side: 'left' | 'high';
  readonly #revisions: RevisionMap;
  /** Of leases with ids that the server chose. */
  readonly #ids = new Map<number, bigint>();
  readonly #slots = new Map<bigint, number>();

  constructor(side: 'left' | 'high', revisions: RevisionMap) {
    this.#side = side;
    this.#revisions = revisions;
  }

  readonly nameOf = (id: bigint): string => {
    const slot = this.#slots.get(id);
    return slot === undefined ? String(id) : `slot ${slot}`;
  };

  revision(revision: Revision): bigint {
    if ('raw' in revision) return revision.raw;
    const { pairs } = this.#revisions;
    const at = 'ago' in revision ? Math.max(0, pairs.length - 1 - revision.ago) : pairs.length - 1;
    const known = BigInt(pairs[at]?.[this.#side] ?? 0);
    return 'ahead' in revision ? known + BigInt(revision.ahead) : known;
  }

  lease(lease: Lease): bigint {
    if ('raw' in lease) return lease.raw;
    const { slot } = lease;
    return isChosenByServer(slot) ? (this.#ids.get(slot) ?? UNKNOWN_LEASE + BigInt(slot)) : leaseId(slot);
  }

  /** The id to ask for: 0 where the server chooses. */
  leaseToGrant(lease: Lease): bigint {
    return 'raw' in lease ? lease.raw : leaseId(lease.slot);
  }

  granted({ lease }: GrantStep, id: bigint): void {
    if ('raw' in lease) return;
    this.#ids.set(lease.slot, id);
    this.#slots.set(id, lease.slot);
  }
}
