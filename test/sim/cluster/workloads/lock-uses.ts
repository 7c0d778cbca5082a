/**
 * Records which owners ask for locks, wait for them and rely on them, and passes that to the check as it happens.
 *
 * U1. A holder relies on its lock as long as the SDK allows it: when another owner is granted the lock, the previous
 *     holder must know by its own clock that it no longer holds it.
 * U2. A waiter that was seen in the queue stays there until its turn comes, unless its wait has an end, it gives up, or
 *     its session may be over; it must know that too by its own clock.
 * U3. A forced release asks no holder. No owner can rely on a grant, or on a place in the queue, if a forced release
 *     was in progress at any time from the request on: the grant may have been made and taken away unnoticed. A forced
 *     release that is never answered stays in progress. A grant that arrives after a newer one is over already.
 */
import { ownerId } from '@remora/lock';
import type { ClientSession, HeldLock } from 'remora';
import { LockCheck, type LockEvent, type LockMode } from '../../../checkers/index.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import type { Answer } from './ask.ts';

/** What its holder knows of a lock, at any time. */
export type Holding = Pick<HeldLock, 'version' | 'mode' | 'state' | 'remainingMs' | 'depth'>;

/** One acquire, and its consequences. */
export interface Use {
  /** The token of the owner. */
  readonly owner: string;
  readonly lock: string;
  /** The requested mode. */
  readonly mode: LockMode;
  /** For a semaphore. */
  readonly permits?: number;
  readonly life: ClientLife;
  /** Absent: the client's own session. */
  readonly session: ClientSession | undefined;
  /** Its wait has no end. */
  readonly patient: boolean;
  /** The number of elections when it asked. */
  readonly electionsBefore: number;
}

interface State {
  /** `waits`: it may be in the queue. `queued`: it was seen there (U2). `gone`: it may have left it. */
  place: 'waits' | 'queued' | 'gone';
  held: Holding | undefined;
  /** Forced releases of the lock that had begun when it asked; undefined if one was in progress. */
  readonly forcedBefore: number | undefined;
}

/** Forced releases of a lock: the number that have begun, and of those that may still happen. */
interface Forced {
  begun: number;
  open: number;
}

export class LockUses {
  readonly #world: World;
  readonly #check = new LockCheck();
  readonly #open = new Map<Use, State>();
  /** By lock: the newest version granted, as far as known. */
  readonly #newest = new Map<string, number>();
  readonly #forced = new Map<string, Forced>();

  /** Grants to owners that were seen in a queue; of these, to owners that waited through an election. */
  waited = 0;
  waitedOverElection = 0;
  /** Forced releases that happened; of these, with waiters, and of a lock that its holder had entered again. */
  forcedOut = 0;
  forcedOverWaiters = 0;
  forcedOutOfReentry = 0;

  constructor(world: World) {
    this.#world = world;
  }

  newestVersion(lock: string): number {
    return this.#newest.get(lock) ?? 0;
  }

  asked(use: Use): void {
    const { begun, open } = this.#forcedOf(use.lock);
    this.#open.set(use, { place: 'waits', held: undefined, forcedBefore: open > 0 ? undefined : begun });
    const { lock, owner, mode, permits = 0 } = use;
    this.#see({ type: 'asked', lock, owner, mode, permits });
  }

  /** Owners with these ids were seen in the lock's queue. */
  queued(lock: string, ids: ReadonlySet<string>): void {
    for (const [use, state] of this.#open) {
      if (use.lock !== lock || !ids.has(ownerId(use.owner)) || state.place !== 'waits') continue;
      if (!use.patient || !staysAlive(use) || state.forcedBefore !== this.#forcedOf(lock).begun) continue;
      state.place = 'queued';
      this.#see({ type: 'queued', lock, owner: use.owner });
    }
  }

  /** Returns false if the grant is over already (U3). */
  granted(use: Use, held: Holding): boolean {
    const { lock } = use;
    const { begun } = this.#forcedOf(lock);
    if (begun > 0 && held.version < this.newestVersion(lock)) {
      this.over(use);
      return false;
    }
    this.#forgetLosers(use);
    const state = this.#open.get(use);
    if (state !== undefined) {
      state.held = held;
      this.#count(use, state);
    }
    this.#newest.set(lock, Math.max(held.version, this.newestVersion(lock)));
    this.#seeGrant(use, held);
    if (state?.forcedBefore !== begun) this.over(use); // U3
    return true;
  }

  /** It continues the hold of an earlier process, which did not release it. */
  resumed(use: Use, held: Holding): void {
    this.#forgetLosers(use);
    const state: State = { place: 'gone', held, forcedBefore: this.#forcedOf(use.lock).begun };
    this.#open.set(use, state);
    this.#see({ type: 'resumed', lock: use.lock, owner: use.owner, version: held.version });
  }

  /** It asks for another mode, and relies on no more than a share of the lock meanwhile. */
  converting({ lock, owner }: Use): void {
    this.#see({ type: 'converting', lock, owner });
  }

  /** It holds the lock, in whatever mode. */
  converted(use: Use, held: Holding): void {
    this.#forgetLosers(use);
    this.#seeGrant(use, held);
  }

  #seeGrant({ lock, owner, permits = 0 }: Use, { mode, version }: Holding): void {
    this.#see({ type: 'granted', lock, owner, mode, version, ...(permits > 0 && { permits }) });
  }

  /** A semaphore may have this capacity from now on; once that is `settled`, it has no other. */
  capacity(lock: string, capacity: number, settled: boolean): void {
    this.#see({ type: 'capacity', lock, capacity, settled });
  }

  /** The number of other holders of a lock, as far as they know. */
  holdersBeside(use: Use): number {
    return [...this.#open].filter(([other, { held }]) => other !== use && other.lock === use.lock && held !== undefined)
      .length;
  }

  /** It may have lost its place in the queue, and may be granted the lock all the same. */
  waitsNoMore(use: Use): void {
    const state = this.#open.get(use);
    if (state === undefined || state.place === 'gone' || state.held !== undefined) return;
    state.place = 'gone';
    this.#see({ type: 'gone', lock: use.lock, owner: use.owner });
  }

  /** It no longer relies on the lock, or no longer waits for it. */
  over(use: Use): void {
    this.waitsNoMore(use);
    const { lock, owner } = use;
    if (this.#open.get(use)?.held !== undefined) this.#see({ type: 'left', lock, owner });
    this.#open.delete(use);
  }

  /** The waiters and holders, for people; empty if there are none. */
  open(): string {
    const texts = [...this.#open].map(([{ owner, lock }, { held, place }]) =>
      held === undefined ? `${owner} waits for ${lock} (${place})` : `${owner} holds ${lock} (${held.state})`,
    );
    return texts.join(', ');
  }

  /** A vanished owner neither waits nor relies on anything. */
  ended(of: (use: Use) => boolean): void {
    for (const use of [...this.#open.keys()]) if (of(use)) this.over(use);
  }

  /** U3. Call the returned function with the result. */
  forced(lock: string): (how: Answer<void>['type']) => void {
    const forced = this.#forcedOf(lock);
    forced.begun++;
    forced.open++;
    const states = [...this.#open].flatMap(([use, state]) => (use.lock === lock ? [state] : []));
    const waiters = states.some(({ held }) => held === undefined);
    const reentry = states.some(({ held }) => held !== undefined && held.depth > 1);
    for (const [use, { held }] of [...this.#open]) {
      if (use.lock !== lock) continue;
      if (held === undefined) this.waitsNoMore(use);
      else this.over(use);
    }
    return (how) => {
      if (how !== 'unknown') forced.open--;
      if (how !== 'answer') return;
      this.forcedOut++;
      if (waiters) this.forcedOverWaiters++;
      if (reentry) this.forcedOutOfReentry++;
    };
  }

  #forcedOf(lock: string): Forced {
    let forced = this.#forced.get(lock);
    if (forced === undefined) {
      forced = { begun: 0, open: 0 };
      this.#forced.set(lock, forced);
    }
    return forced;
  }

  accepted({ lock, owner }: Use, version: number): void {
    this.#see({ type: 'accepted', lock, owner, version });
  }

  finish(): void {
    this.#world.report(this.#check.finish());
  }

  /** U1, U2: finds owners that have lost the lock, or a place in its queue, by their own clocks. */
  #forgetLosers(winner: Use): void {
    for (const [use, { held, place }] of [...this.#open]) {
      if (use === winner || use.lock !== winner.lock) continue;
      if (held !== undefined && held.remainingMs <= 0) this.over(use);
      else if (place === 'queued' && !staysAlive(use)) this.waitsNoMore(use);
    }
  }

  #count({ electionsBefore }: Use, { place }: State): void {
    if (place !== 'queued') return;
    this.waited++;
    if (this.#world.elections > electionsBefore) this.waitedOverElection++;
  }

  #see(event: LockEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}

/** Whether its client, if it checked now, would know that its session is alive. */
export function staysAlive({ session, life }: Use): boolean {
  return !life.client.clock.paused && session !== undefined && session.state === 'active';
}
