/**
 * Locks under contention, with waiters of several kinds, and a resource that accepts writes only under the newest
 * fencing version (design §15). `LockCheck` checks the promises to holders and waiters; a search for an order that
 * explains them checks the cluster's answers.
 *
 * V1. A version is current until its grant is over: a check never confirms one whose release was acknowledged, or one
 *     older than a known grant; and always one that its holder relies on.
 */
import { sleep, type Timer } from '@remora/base';
import type { HeldLock } from 'remora';
import type { HistoryRecord } from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { type Answer, ask, think, withHands } from './ask.ts';
import { type Hand, LOST, LockHands, WAIT_MS_MAX } from './lock-hands.ts';
import { LockHistory } from './lock-history.ts';
import { LockUses, type Use } from './lock-uses.ts';
import type { MakeWorkload, Workload } from './workload.ts';

/** Locks that their holders release, and one that is sometimes taken from them. */
export const LOCKS: readonly string[] = ['L0', 'L1'];
const FORCED = 'F';
/** Most want the same one. */
const LOCKS_BY_WEIGHT: readonly string[] = ['L0', 'L0', 'L0', 'L1', FORCED, FORCED];
/** Longer than any session lives without heartbeats. */
const RELY_MS = 10_000;
const DEPTH_MAX = 3;
/** The longest time of a write in transit: usually, and if its sender stood still. */
const WRITE_MS_MAX = 50;
const LATE_WRITE_MS_MAX = 8_000;
/** Versions of ended grants, to check. */
const OVER_MAX = 20;
const ACQUIRE_ERRORS = [...LOST, 'LOCK_TIMEOUT', 'CANCELED'] as const;
/**
 * Where locks are taken by force, an owner that has not learned of its grant yet may get this error. No other owner
 * does.
 */
const FORCED_ERRORS = [...ACQUIRE_ERRORS, 'LOCK_CANCELED'] as const;
/** How much less often than others this workload acquires, and looks at locks. */
const ACQUIRES_SELDOM = 2;
const LOOKS_SELDOM = 6;
/** The latest time at which a waiter is looked for in the queue. */
const LOOK_MS_MAX = 150;

export const locks: MakeWorkload = (world) => new LockLoad(world);

class LockLoad implements Workload {
  readonly name = 'locks';
  readonly #world: World;
  readonly #uses: LockUses;
  readonly #hands: LockHands;
  readonly #history: LockHistory;
  /** The newest version under which each lock's resource was written. */
  readonly #written = new Map<string, number>();
  /** Grants whose release was acknowledged. */
  readonly #released: { readonly name: string; readonly version: number }[] = [];
  #fenced = 0;

  constructor(world: World) {
    this.#world = world;
    this.#uses = new LockUses(world);
    this.#hands = new LockHands(world, this.#uses);
    this.#history = new LockHistory(() => world.nowNs());
  }

  async run(life: ClientLife): Promise<void> {
    const acquiring = this.#hands.work(life, ACQUIRES_SELDOM, (hand) => this.#one(hand));
    const looking = withHands(this.#world, 1, async () => {
      await think(this.#world, life, LOOKS_SELDOM);
      await this.#look(life);
    });
    await Promise.all([acquiring, looking]);
  }

  missing(): string {
    return this.#uses.open();
  }

  ended(life: ClientLife): void {
    this.#uses.ended((use) => use.life === life);
  }

  history(): readonly HistoryRecord[] {
    return this.#history.records();
  }

  check(): void {
    this.#uses.finish();
    this.#history.check();
  }

  figures(): Readonly<Record<string, number>> {
    const { waited, waitedOverElection, forcedOut, forcedOverWaiters, forcedOutOfReentry } = this.#uses;
    return {
      'waiters granted': waited,
      'over an election': waitedOverElection,
      'writes fenced off': this.#fenced,
      'forced releases': forcedOut,
      'over waiters': forcedOverWaiters,
      'out of a re-entry': forcedOutOfReentry,
    };
  }

  // ------------------------------------------------------------------------------------------ who acquires

  async #one(hand: Hand): Promise<void> {
    const { random } = hand.life;
    const session = random.int(4) === 0 ? undefined : await this.#hands.session(hand);
    const lock = LOCKS_BY_WEIGHT[random.int(LOCKS_BY_WEIGHT.length)] ?? FORCED;
    const use = this.#hands.newUse(hand, session, lock);
    const held = await this.#acquire(use);
    if (held === undefined) return;
    await this.#hold(use, held);
    this.#uses.over(use);
    const ended = this.#hands.endsWith(hand, use);
    if (ended === undefined) return this.#leave(use, held);
    await ask({ world: this.#world, life: hand.life, what: 'end of session' }, () => ended.close(), LOST);
  }

  async #acquire(use: Use): Promise<HeldLock | undefined> {
    const { life, session, patient } = use;
    const { random } = life;
    const lock = (session ?? life.remora).lock(use.lock);
    const controller = new AbortController();
    const options = { token: use.owner, depthMax: DEPTH_MAX, signal: controller.signal };
    const wait = patient ? undefined : 1 + random.int(WAIT_MS_MAX);
    const tries = !patient && random.int(2) === 0;
    this.#uses.asked(use);
    const timers = this.#meanwhile(use, controller);
    const question = (): Promise<HeldLock | undefined> =>
      tries ? lock.tryAcquire(options) : lock.acquire({ ...options, wait });
    const asked = await this.#history.acquire({ ...use, tries }, () =>
      ask(
        { world: this.#world, life, what: tries ? 'try' : 'acquire' },
        question,
        use.lock === FORCED ? FORCED_ERRORS : ACQUIRE_ERRORS,
      ),
    );
    for (const timer of timers) timer.cancel();
    const held = asked.type === 'answer' ? asked.value : undefined;
    if (this.#hands.relies(use, held)) return held;
    // Others wait for it.
    if (held !== undefined) await this.#release(use, held);
    return undefined;
  }

  /** Checks whether it is in the queue; sometimes gives up. */
  #meanwhile(use: Use, controller: AbortController): readonly Timer[] {
    const { life, lock } = use;
    const { random, clock } = life;
    const look = clock.setTimer(random.int(LOOK_MS_MAX), () => {
      void this.#show(life, lock).catch((error: unknown) => this.#world.fail(error));
    });
    const giveUp = this.#hands.givesUp(use, controller);
    return giveUp === undefined ? [look] : [look, giveUp];
  }

  // ------------------------------------------------------------------------------------------ who holds

  /** Works under the lock for a while, and enters it again. */
  async #hold(use: Use, held: HeldLock): Promise<void> {
    const { random, clock } = use.life;
    if (random.int(10) === 0) return this.#rely(use, held);
    for (let works = random.int(5); works > 0 && held.state === 'active'; works--) {
      const kind = random.int(6);
      if (kind === 0) await this.#checkHeld(use, held);
      else if (kind === 1) await this.#reenter(use, held);
      else this.#write(use, held.version);
      await sleep(clock, random.int(this.#world.options.thinkMs));
    }
    // Also while heartbeats are not answered: a level that is never left keeps the lock from all others.
    while (held.depth > 1 && held.state !== 'lost') await this.#release(use, held);
  }

  /** Works under it for as long as allowed, whatever happens to the heartbeats: this tests a session's margin. */
  async #rely(use: Use, held: HeldLock): Promise<void> {
    const { random, clock } = use.life;
    const endMs = clock.monotonicMs() + RELY_MS;
    while (held.remainingMs > 0 && clock.monotonicMs() < endMs && !this.#world.resting) {
      this.#write(use, held.version);
      await sleep(clock, random.int(this.#world.options.thinkMs));
    }
  }

  async #leave(use: Use, held: HeldLock): Promise<void> {
    const released = await this.#release(use, held);
    if (!released) return;
    this.#released.push({ name: use.lock, version: held.version });
    if (this.#released.length > OVER_MAX) this.#released.shift();
  }

  async #release(use: Use, held: HeldLock): Promise<boolean> {
    const { life, lock } = use;
    const answers = lock === FORCED ? [...LOST, 'LOCK_NOT_HELD' as const] : LOST;
    const question = () => ask({ world: this.#world, life, what: 'release' }, () => held.release(), answers);
    const asked = await (held.depth > 1 ? question() : this.#history.release(use, { held, ask: question }));
    return asked.type === 'answer' && held.state === 'released';
  }

  async #reenter(use: Use, held: HeldLock): Promise<void> {
    const { life, lock } = use;
    const answers = [...LOST, 'LOCK_NOT_HELD', 'LOCK_DEPTH_EXCEEDED'] as const;
    const { depth } = held;
    // It is taken away while the next level is entered, or from an owner deep inside.
    const force = lock === FORCED ? life.random.int(4) : 0;
    const question = () =>
      ask({ world: this.#world, life, what: 'reenter' }, () => held.acquire({ depthMax: DEPTH_MAX }), answers);
    const [asked] = await Promise.all([
      this.#history.reenter(use, { held, ask: question }),
      force === 1 ? this.#force(life) : undefined,
    ]);
    const refused = asked.type === 'refused' ? asked.code : undefined;
    if (asked.type === 'answer' && held.depth !== depth + 1) {
      throw new Violation('lock: entries are counted', `${lock} was entered at ${depth}, and is at ${held.depth}`);
    }
    // Only an owner whose lock was taken away may get this answer.
    if (refused === 'LOCK_NOT_HELD' && lock !== FORCED && held.remainingMs > 0) {
      throw new Violation('lock: a holder holds', `${lock} (version ${held.version}): ${refused}`);
    }
    if (force === 2) await this.#force(life);
  }

  /** V1. */
  async #checkHeld({ life, lock }: Use, held: HeldLock): Promise<void> {
    const asked = await this.#isCurrent(life, { name: lock, version: held.version });
    if (asked.type !== 'answer' || asked.value || lock === FORCED || held.state !== 'active') return;
    throw new Violation('lock: a holder holds', `${lock} is held with ${held.version}, which is not its version`);
  }

  /** In transit to the resource, a write may be overtaken by those of a later holder, and by that one's loss. */
  #write(use: Use, version: number): void {
    const { lock, life } = use;
    const delayMs = life.random.int(life.random.int(6) === 0 ? LATE_WRITE_MS_MAX : WRITE_MS_MAX);
    this.#world.loop.setTimer(delayMs, () => {
      if (version < (this.#written.get(lock) ?? 0)) {
        this.#fenced++;
        return;
      }
      this.#written.set(lock, version);
      this.#uses.accepted(use, version);
    });
  }

  // ------------------------------------------------------------------------------------------ who looks on

  async #look(life: ClientLife): Promise<void> {
    const kind = life.random.int(8);
    if (kind < 2) await this.#force(life);
    else if (kind === 2) await this.#checkReleased(life);
    else await this.#show(life, LOCKS[kind % LOCKS.length] ?? '');
  }

  /** Checks the waiters, and whether the shown holder is the last known one, or a later one. */
  async #show(life: ClientLife, lock: string): Promise<void> {
    const known = this.#uses.newestVersion(lock);
    const asked = await ask({ world: this.#world, life, what: 'show' }, () => life.remora.locks.show(lock));
    if (asked.type !== 'answer' || asked.value === undefined) return;
    const { holders, waiters } = asked.value;
    const [holder] = holders;
    if (holder !== undefined && holder.version < known) {
      throw new Violation('lock: versions grow', `${lock} is shown with ${holder.version}, after ${known} was granted`);
    }
    this.#uses.queued(lock, new Set(waiters.map(({ owner }) => owner.id)));
  }

  /** V1. */
  async #checkReleased(life: ClientLife): Promise<void> {
    const released = this.#released[life.random.int(OVER_MAX)];
    if (released === undefined) return;
    const asked = await this.#isCurrent(life, released);
    if (asked.type !== 'answer' || !asked.value) return;
    throw new Violation('lock: over is over', `${released.name} was released, and ${released.version} is its version`);
  }

  #isCurrent(life: ClientLife, grant: { readonly name: string; readonly version: number }): Promise<Answer<boolean>> {
    const question = async (): Promise<boolean> => {
      const [current = false] = await life.remora.locks.check([grant]);
      return current;
    };
    return this.#history.checkVersion({ who: life.name, lock: grant.name, version: grant.version }, () =>
      ask({ world: this.#world, life, what: 'check' }, question),
    );
  }

  async #force(life: ClientLife): Promise<void> {
    const settled = this.#uses.forced(FORCED);
    const question = () => life.remora.locks.forceRelease(FORCED);
    const asked = await this.#history.force({ who: life.name, lock: FORCED }, () =>
      ask({ world: this.#world, life, what: 'force release' }, question, ['LOCK_NOT_HELD']),
    );
    settled(asked.type);
  }
}
