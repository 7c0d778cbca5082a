/**
 * What the needs of a request that depend on leases come to.
 *
 * OW1. The owner of an id with its incarnation never changes (dataserver's leases.ts S6). So an answer of the lease's
 *      home counts for ever, the ranges of its locks need not know the owner, and no leader compares it again. Rights
 *      do change: leaders compare the revision (decisions.ts DE1).
 * OW2. Only its owner renews, changes or uses a session, and attaches keys to it. Who may steer all locks ends it, too,
 *      if he may write its keys: a session is in no namespace, and may have any lock by the time that it ends.
 * OW3. A session that its home does not know is not used. Another range may not have heard of its end yet, and would
 *      let a stranger release a hold before its lock-delay begins.
 * OW4. A request that names no incarnation is decided by the present one, and ends no other.
 * OW5. A lease of plain keys belongs to every user who may write all its keys, as in etcd. Only root uses it for locks.
 */
import type { LeaseNeed, Need, PlainNeed } from '@remora/auth';
import { isPlain } from '@remora/auth';
import { type Bytes, ServiceError, unreachable } from '@remora/base';
import type { LeaseInfo } from '@remora/protocol';
import type { ClearedBackend } from './cleared-backend.ts';

/** OW1. Beyond it, all are asked about again. */
const OWNERS_MAX = 50_000;

/** One lease, as far as decisions see it. */
interface Known {
  readonly incarnation: number;
  readonly owner: string | undefined;
}

/** What the needs about leases of one request come to. */
export interface PlainNeeds {
  readonly needs: readonly PlainNeed[];
  /** The incarnation of the lease that the request ends (OW4); 0: it ends none, or names the incarnation itself. */
  readonly ends: number;
}

export class LeaseNeeds {
  readonly #ranges: Pick<ClearedBackend, 'query'>;
  readonly #known = new Map<bigint, Known>();

  constructor(ranges: Pick<ClearedBackend, 'query'>) {
    this.#ranges = ranges;
  }

  /** What is known without a question (OW1); undefined: a range has to be asked. */
  known(needs: readonly Need[], user: string | undefined): PlainNeeds | undefined {
    const found: PlainNeed[] = [];
    for (const need of needs) {
      if (isPlain(need)) continue;
      const known = need.type === 'leaseKeys' ? undefined : this.#known.get(need.lease);
      if (known === undefined || need.type === 'leaseKeys' || known.incarnation !== need.incarnation) return undefined;
      if (known.owner === undefined && need.type === 'lease') return undefined;
      if (known.owner !== user && isEnd(need)) return undefined;
      found.push(...needsOf(need, known.owner, NO_KEYS));
    }
    return { needs: found, ends: 0 };
  }

  /** @throws ServiceError `LEASE_NOT_FOUND`, `SESSION_EXPIRED`, or what ranges answer */
  async ask(needs: readonly Need[], user: string | undefined, timeoutMs: number): Promise<PlainNeeds> {
    const found: PlainNeed[] = [];
    let ends = 0;
    for (const need of needs) {
      if (isPlain(need)) continue;
      const lease = await this.#ask(need.lease, need.type !== 'session', timeoutMs);
      const isOther = need.type !== 'leaseKeys' && need.incarnation !== 0 && need.incarnation !== lease.incarnation;
      if (lease.incarnation === 0 || isOther) {
        refuseUnknown(need);
        continue;
      }
      const keys = isEnd(need) && lease.owner !== undefined && lease.owner === user ? NO_KEYS : lease.keys;
      found.push(...needsOf(need, lease.owner, keys));
      if (isEnd(need) && need.incarnation === 0) ends = lease.incarnation; // OW4
    }
    return { needs: found, ends };
  }

  #ask(id: bigint, keys: boolean, timeoutMs: number): Promise<LeaseInfo> {
    return new Promise((resolve, reject) => {
      const query = { type: 'leaseTimeToLive', id, keys } as const;
      this.#ranges.query(query, { timeoutMs: Math.max(1, timeoutMs) }, (error, reply) => {
        if (reply?.result.type === 'leaseTimeToLive') resolve(this.#remember(reply.result.lease));
        else if (error?.code === 'LEASE_NOT_FOUND') resolve({ ...NO_LEASE, id });
        else reject(error ?? new ServiceError('INTERNAL', 'a lease was not answered for'));
      });
    });
  }

  /** OW1. */
  #remember(lease: LeaseInfo): LeaseInfo {
    const { id, incarnation, owner } = lease;
    if (incarnation === 0) return lease;
    if (this.#known.size >= OWNERS_MAX) this.#known.clear();
    this.#known.set(id, { incarnation, owner });
    return lease;
  }
}

const NO_KEYS: readonly Bytes[] = [];
const NO_LEASE = { incarnation: 0, grantedTtlMs: 0, remainingMs: -1, keys: NO_KEYS, attributes: {}, endsEmpty: false };

function needsOf(need: LeaseNeed, owner: string | undefined, keys: readonly Bytes[]): readonly PlainNeed[] {
  const { lease } = need;
  const owned = (what: string, orSteer: boolean): PlainNeed => ({ type: 'owner', lease, owner, what, orSteer });
  switch (need.type) {
    case 'leaseKeys':
      return keysNeeds('read', keys);
    case 'session':
      return [owned(need.use, need.use === 'show')];
    case 'lease':
      if (owner === undefined) return keysNeeds('write', keys); // OW5
      if (need.use !== 'end') return [owned(need.use === 'attach' ? 'attach keys to' : need.use, false)]; // OW2
      return [owned('end', true), ...keysNeeds('write', keys)];
    default:
      return unreachable(need);
  }
}

/** To see the keys of a lease in an answer. */
export function needsOfShownKeys({ keys }: LeaseInfo): readonly PlainNeed[] {
  return keysNeeds('read', keys);
}

/** To see what the client of a session says of itself, and whose it is. */
export function needOfShownSession({ id: lease, owner }: LeaseInfo): PlainNeed {
  return { type: 'owner', lease, owner, what: 'show', orSteer: true };
}

function keysNeeds(access: 'read' | 'write', keys: readonly Bytes[]): readonly PlainNeed[] {
  return keys.map((key) => ({ type: 'keys', access, key }));
}

function isEnd(need: LeaseNeed): need is Extract<LeaseNeed, { readonly type: 'lease' }> {
  return need.type === 'lease' && need.use === 'end';
}

/**
 * The range answers what names an incarnation, and what shows only: it affects no lease of another incarnation.
 *
 * @throws ServiceError for everything else: the lease may be granted to somebody else before the request arrives (OW3,
 *   OW4)
 */
function refuseUnknown(need: LeaseNeed): void {
  switch (need.type) {
    case 'leaseKeys':
      return;
    case 'session':
      if (need.use === 'use') throw new ServiceError('SESSION_EXPIRED', 'the session has ended: open a new one'); // OW3
      return;
    case 'lease':
      if (need.incarnation !== 0) return;
      throw new ServiceError('LEASE_NOT_FOUND', `lease ${need.lease} does not exist or has expired`);
    default:
      return unreachable(need);
  }
}
