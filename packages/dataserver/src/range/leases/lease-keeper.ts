import { type Clock, LazyMap, ServiceError, type Timer } from '@remora/base';
import { TTL_NEVER_MS } from '@remora/lock';
import type { Command } from '@remora/protocol';
import type { Lease, Leases } from '../../state/leases/leases.ts';

interface Kept {
  readonly incarnation: number;
  /** The number of the lease's change that the deadline includes (LK5). */
  change: number;
  deadlineMs: number;
  /** An expiry was proposed: no keep-alive is answered until its outcome (LK3). */
  expiring: boolean;
  /** When a checkpoint is due, unless the client sends a heartbeat before (LK6). */
  checkpointAtMs: number;
  /** A checkpoint was proposed, and is not decided. */
  checkpointing: boolean;
  /** The pause after a checkpoint that could not be logged. */
  checkpointRetryMs: number;
}

/** One of `EXPIRING_MAX`. */
interface Place {
  readonly untilMs: number;
  isFree: boolean;
}

export interface LeaseKeeperDeps {
  readonly clock: Clock;
  readonly leases: Leases;
  /** `done` learns whether it was applied. */
  readonly propose: (
    command: Extract<Command, { readonly type: 'leaseExpire' | 'leaseCheckpoint' }>,
    done: (applied: boolean) => void,
  ) => void;
  /** LK6; absent: LEASE_CHECKPOINT_MS. */
  readonly checkpointMs?: number | undefined;
}

interface KeepAlive {
  readonly id: bigint;
  /** 0: any incarnation. */
  readonly incarnation: number;
  /** Monotonic time of its arrival. */
  readonly receivedMs: number;
}

/** How long a client is silent before the remaining time of its lease is logged: as in etcd. */
const LEASE_CHECKPOINT_MS = 300_000;
/** Expiries proposed and not decided at a time. More wait for the next sweep, so that they never displace requests. */
const EXPIRING_MAX = 1_000;
/** LK7 */
const PLACE_KEPT_MS = 10_000;
/** The same for checkpoints. */
const CHECKPOINTING_MAX = 1_000;
/**
 * The first pause after a checkpoint that could not be logged, for example because a queue was full; doubled each time.
 */
const CHECKPOINT_RETRY_MS = 1_000;
/** How often deadlines are checked: the precision of expiry. */
const SWEEP_MS = 100;

/**
 * A leader's watch over the time of leases.
 *
 * LK1. Deadlines run on this leader's monotonic clock. They start again when it becomes leader: in full or, if there is
 *      a checkpoint, with the time that was left then (traps 17).
 * LK2. Nothing ends here: expiry is proposed, and names the term and the incarnation.
 * LK3. After proposing the expiry of a lease, no keep-alive of it is acknowledged until the outcome (design §9 ▸). That
 *      also holds if the range was sealed meanwhile, and unsealed in the same term: a command that waits for a revision
 *      survives the seal, and is applied after it.
 * LK4. A lease is reported as missing only if the state says so. A replica that no longer keeps its time, because
 *      leadership was lost between the confirmation of a keep-alive and its answer, only reports that it does not lead.
 * LK5. A change of a lease's TTL counts from the next heartbeat on, whose acknowledgement names the TTL. That also
 *      holds for a TTL that shortens the remaining time: a client that asks for a shorter one relies on no more from
 *      the request on (session.ts S5 of the client).
 * LK6. The remaining time of a lease whose TTL is longer than `checkpointMs` is logged whenever its client has been
 *      silent for another `checkpointMs`, so that the lease ends however often leaders change (docs/decisions/0059).
 *      From the proposal of a checkpoint on, a keep-alive is acknowledged only after a command that removes the
 *      checkpoint: so no later leader gives a lease less time than was acknowledged.
 * LK7. An expiry may stay undecided for long, because a transaction holds the lease's keys and the transaction's
 *      outcome is unreachable. It continues to wait (LK3) but delays no other expiry: its place is given to a later
 *      one.
 */
export class LeaseKeeper {
  readonly #deps: LeaseKeeperDeps;
  readonly #checkpointMs: number;
  readonly #kept = new LazyMap<bigint, Kept>();
  /** LK3, LK6. Leases with an undecided proposal, since the deadlines of the term were stopped. */
  readonly #undecided = new LazyMap<bigint, Kept>();
  #term = 0;
  /** The term of the proposals that are counted. */
  #countedTerm = 0;
  #expiring = 0;
  /** LK7. In the order in which the places were taken. */
  #places: Place[] = [];
  #checkpointing = 0;
  #timer: Timer | undefined;

  constructor(deps: LeaseKeeperDeps) {
    this.#deps = deps;
    this.#checkpointMs = deps.checkpointMs ?? LEASE_CHECKPOINT_MS;
  }

  /** LK1. Called once this replica leads and has applied an entry of its own term. */
  start(term: number): void {
    this.#term = term;
    if (term !== this.#countedTerm) this.#forgetProposals(term);
    this.#kept.clear();
    for (const lease of this.#deps.leases.all()) this.#keep(lease);
    this.#undecided.clear();
    this.#arm();
  }

  /** Proposals of another term are not applied in this one. */
  #forgetProposals(term: number): void {
    this.#countedTerm = term;
    this.#expiring = 0;
    this.#places = [];
    this.#checkpointing = 0;
    this.#undecided.clear();
  }

  stop(): void {
    this.#term = 0;
    for (const [id, kept] of this.#kept) if (kept.expiring || kept.checkpointing) this.#undecided.set(id, kept);
    this.#kept.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** The number of leases whose deadlines it keeps. */
  get size(): number {
    return this.#kept.size;
  }

  granted(lease: Lease): void {
    if (this.#term === 0) return;
    this.#keep(lease);
    this.#arm();
  }

  ended(id: bigint): void {
    this.#kept.delete(id);
  }

  /**
   * Renews a lease from when its keep-alive arrived; called when leadership at or after that moment is confirmed.
   * `done` gets the lease when it may be acknowledged (LK6).
   *
   * @throws ServiceError LEASE_NOT_FOUND, UNAVAILABLE while its expiry is being decided, or NOT_LEADER (LK4)
   */
  renew(
    { id, incarnation, receivedMs }: KeepAlive,
    done: (error: ServiceError | undefined, lease: Lease | undefined) => void,
  ): void {
    const lease = this.#deps.leases.get(id);
    if (lease === undefined || (incarnation !== 0 && incarnation !== lease.incarnation)) {
      throw new ServiceError('LEASE_NOT_FOUND', `lease ${id} does not exist or has expired`);
    }
    const kept = this.#kept.get(id);
    if (kept === undefined) throw new ServiceError('NOT_LEADER', 'this replica does not lead the range any more');
    if (kept.expiring)
      throw new ServiceError('UNAVAILABLE', 'the lease is about to expire; its outcome is being decided');
    const deadlineMs = receivedMs + lease.ttlMs;
    // Heartbeats may be answered in another order than they arrived.
    kept.deadlineMs = kept.change === lease.change ? Math.max(kept.deadlineMs, deadlineMs) : deadlineMs;
    kept.change = lease.change;
    kept.checkpointAtMs = this.#nextCheckpointMs(lease);
    kept.checkpointRetryMs = CHECKPOINT_RETRY_MS;
    if (lease.remainingMs === undefined && !kept.checkpointing) done(undefined, lease);
    else this.#takeBack(lease, done);
  }

  /** LK6 */
  #takeBack(lease: Lease, done: (error: ServiceError | undefined, lease: Lease | undefined) => void): void {
    const { id, incarnation } = lease;
    const command = { type: 'leaseCheckpoint', id, incarnation, term: this.#term, remainingMs: undefined } as const;
    this.#deps.propose(command, (applied) => {
      if (applied) done(undefined, lease);
      else done(new ServiceError('UNAVAILABLE', 'the keep-alive could not be logged; try again'), undefined);
    });
  }

  /** The remaining time of a lease, at least 0; undefined if its deadline is not kept here. */
  remainingMs(id: bigint): number | undefined {
    const kept = this.#kept.get(id);
    return kept === undefined ? undefined : Math.max(0, kept.deadlineMs - this.#deps.clock.monotonicMs());
  }

  #keep(lease: Lease): void {
    const { id, incarnation, change, ttlMs, remainingMs = ttlMs } = lease;
    const deadlineMs = this.#deps.clock.monotonicMs() + Math.min(ttlMs, remainingMs);
    const times = { change, deadlineMs, checkpointAtMs: this.#nextCheckpointMs(lease) };
    const undecided = this.#undecided.get(id);
    const proposed = { incarnation, expiring: false, checkpointing: false, checkpointRetryMs: CHECKPOINT_RETRY_MS };
    // The same object: its proposals report their results to it.
    this.#kept.set(id, Object.assign(undecided?.incarnation === incarnation ? undecided : proposed, times));
  }

  /** A lease that never ends needs no checkpoint. */
  #nextCheckpointMs({ ttlMs }: Lease): number {
    if (ttlMs <= this.#checkpointMs || ttlMs >= TTL_NEVER_MS) return Number.POSITIVE_INFINITY;
    return this.#deps.clock.monotonicMs() + this.#checkpointMs;
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#kept.size === 0) return;
    this.#timer = this.#deps.clock.setTimer(SWEEP_MS, () => {
      this.#timer = undefined;
      this.#sweep();
      this.#arm();
    });
  }

  #sweep(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#givePlacesUp(nowMs);
    for (const [id, kept] of this.#kept) {
      if (kept.expiring) continue;
      if (kept.deadlineMs <= nowMs) this.#expire(id, kept, nowMs);
      else if (kept.checkpointAtMs <= nowMs) this.#checkpoint(id, kept, nowMs);
    }
  }

  #expire(id: bigint, kept: Kept, nowMs: number): void {
    if (this.#expiring >= EXPIRING_MAX) return;
    const term = this.#term;
    kept.expiring = true;
    const place = { untilMs: nowMs + PLACE_KEPT_MS, isFree: false };
    this.#places.push(place);
    this.#expiring++;
    this.#deps.propose({ type: 'leaseExpire', id, incarnation: kept.incarnation, term }, (ended) => {
      if (term === this.#countedTerm) this.#free(place);
      if (!ended) kept.expiring = false;
    });
  }

  /** LK7 */
  #givePlacesUp(nowMs: number): void {
    const kept = this.#places.findIndex(({ isFree, untilMs }) => !isFree && nowMs < untilMs);
    const gone = this.#places.splice(0, kept < 0 ? this.#places.length : kept);
    for (const place of gone) this.#free(place);
  }

  #free(place: Place): void {
    if (place.isFree) return;
    place.isFree = true;
    this.#expiring--;
  }

  /** LK6 */
  #checkpoint(id: bigint, kept: Kept, nowMs: number): void {
    if (kept.checkpointing || this.#checkpointing >= CHECKPOINTING_MAX) return;
    const { incarnation, deadlineMs } = kept;
    const term = this.#term;
    const remainingMs = Math.ceil(deadlineMs - nowMs);
    kept.checkpointing = true;
    const nextMs = nowMs + this.#checkpointMs;
    kept.checkpointAtMs = nextMs;
    this.#checkpointing++;
    this.#deps.propose({ type: 'leaseCheckpoint', id, incarnation, term, remainingMs }, (applied) => {
      if (term === this.#countedTerm) this.#checkpointing--;
      kept.checkpointing = false;
      if (applied) kept.checkpointRetryMs = CHECKPOINT_RETRY_MS;
      else if (kept.checkpointAtMs === nextMs) this.#checkpointSoon(kept); // The client sent no heartbeat meanwhile.
    });
  }

  #checkpointSoon(kept: Kept): void {
    kept.checkpointAtMs = this.#deps.clock.monotonicMs() + kept.checkpointRetryMs;
    kept.checkpointRetryMs = Math.min(2 * kept.checkpointRetryMs, this.#checkpointMs);
  }
}
