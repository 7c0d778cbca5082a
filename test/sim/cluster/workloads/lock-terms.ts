/**
 * Locks with terms of their own: leases that are renewed, fixed, capped or bound by a condition, all of which change
 * while they are held; lock-delays; holders that leave them to expire.
 *
 * LT1. `LockCheck` checks which holders may rely on a lock, like for any lock: terms change only when that is.
 * LT2. A lock that its holder does not release stays its own for as long as that was certain, plus its lock-delay; and
 *      a holder relies on a limited lock no longer than its limit (`LapseCheck`).
 * LT3. A holder learns that it holds, like with locks of other kinds.
 */
import { sleep } from '@remora/base';
import type { HeldLock } from 'remora';
import { LapseCheck, type LapseEvent } from '../../../checkers/index.ts';
import {
  drawCondition,
  drawTerms,
  drawTtlMs,
  isLimited,
  optionsOf,
  type TermBounds,
  type Terms,
} from '../../../support/lock-terms.ts';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { ask } from './ask.ts';
import { type Hand, LOST, LockHands, WAIT_MS_MAX } from './lock-hands.ts';
import { LockUses, type Use } from './lock-uses.ts';
import type { MakeWorkload, Workload } from './workload.ts';

export const TERM_LOCKS: readonly string[] = ['term0', 'term1', 'term2'];
/** How much less often than others this workload acquires. */
const ACQUIRES_SELDOM = 3;
const WORKS_MAX = 4;
const BOUNDS: TermBounds = {
  ...{ ttlMsMin: 1_000, ttlMsSpread: 3_000, delayMsMax: 3_000 },
  ...{ heartbeatMsMin: 200, heartbeatMsSpread: 400 },
};
/** The interval at which holders of limited locks check for their loss. */
const LOOK_MS = 100;
const LAPSES_WITHIN_MS = 12_000;
/** Clocks run apart by a twentieth, and change their rates meanwhile. */
const DRIFT = 0.12;
/** Tolerance for a slightly late notice. */
const NOTICED_MS = 200;
const NOT_ACQUIRED = [...LOST, 'LOCK_TIMEOUT', 'LOCK_BUSY', 'CANCELED'] as const;
const NOT_CHANGED = [...LOST, 'LOCK_NOT_HELD'] as const;

/** A hold, and its latest end on the world's clock. */
interface Held {
  readonly use: Use;
  readonly lock: HeldLock;
  readonly terms: Terms;
  limitMs: number;
}

export const lockTerms: MakeWorkload = (world) => new LockTerms(world);

class LockTerms implements Workload {
  readonly name = 'locks with terms of their own';
  readonly #world: World;
  readonly #uses: LockUses;
  readonly #hands: LockHands;
  readonly #lapses = new LapseCheck();
  readonly #figures = { granted: 0, changed: 0, orphaned: 0 };

  constructor(world: World) {
    this.#world = world;
    this.#uses = new LockUses(world);
    this.#hands = new LockHands(world, this.#uses);
  }

  run(life: ClientLife): Promise<void> {
    return this.#hands.work(life, ACQUIRES_SELDOM, (hand) => this.#one(hand));
  }

  missing(): string {
    return this.#uses.open();
  }

  ended(life: ClientLife): void {
    this.#uses.ended((use) => use.life === life);
  }

  check(): void {
    this.#uses.finish();
  }

  figures(): Readonly<Record<string, number>> {
    const { granted, changed, orphaned } = this.#figures;
    return {
      'locks with terms granted': granted,
      'terms changed while held': changed,
      'left to their time': orphaned,
      'granted after a lapse': this.#lapses.lapsed,
      'of these after a delay': this.#lapses.delayed,
    };
  }

  // ------------------------------------------------------------------------------------------ who acquires

  async #one(hand: Hand): Promise<void> {
    const { random } = hand.life;
    const terms = drawTerms(random, BOUNDS);
    const session = terms.kind === 'session' ? await this.#hands.session(hand) : undefined;
    const use = this.#hands.newUse(hand, session, TERM_LOCKS[random.int(TERM_LOCKS.length)] ?? 'term0');
    const lock = await this.#acquire(use, terms);
    if (lock === undefined) return;
    this.#figures.granted++;
    const { ttlMs, kind } = terms;
    const held: Held = { use, lock, terms, limitMs: isLimited(kind) ? this.#latest(ttlMs) : Number.POSITIVE_INFINITY };
    this.#vouch(held);
    await this.#hold(held);
    await this.#end(held);
  }

  async #acquire(use: Use, terms: Terms): Promise<HeldLock | undefined> {
    const { life, owner: token, patient } = use;
    const { random } = life;
    const controller = new AbortController();
    const wait = patient ? undefined : random.int(3) === 0 ? 0 : 1 + random.int(WAIT_MS_MAX);
    const options = { ...optionsOf(terms, life.random, BOUNDS), token, wait, signal: controller.signal };
    this.#uses.asked(use);
    const giveUp = this.#hands.givesUp(use, controller);
    const from = use.session ?? life.remora;
    const asked = await this.#ask(use, 'acquire', () => from.lock(use.lock).acquire(options), NOT_ACQUIRED);
    giveUp?.cancel();
    const given = asked.type === 'answer' ? asked.value : undefined;
    if (given !== undefined) {
      // Its client did not learn of it, but it was granted: the next holder has the lock after that.
      const { version } = given;
      this.#lapse({
        type: 'granted',
        lock: use.lock,
        version,
        atMs: this.#world.loop.monotonicMs(),
        ...this.#delay(terms),
      });
    }
    if (this.#hands.relies(use, given)) return given;
    if (given !== undefined) await this.#release(use, given);
    return undefined;
  }

  // ------------------------------------------------------------------------------------------ who holds

  async #hold(held: Held): Promise<void> {
    const { use, lock } = held;
    const { random, clock } = use.life;
    for (let works = random.int(WORKS_MAX); works > 0 && lock.state === 'active'; works--) {
      const kind = random.int(3);
      if (kind === 0) await this.#checkHeld(held);
      else await this.#change(held);
      this.#vouch(held);
      await sleep(clock, random.int(this.#world.options.thinkMs));
    }
  }

  /** LT3. */
  async #checkHeld({ use, lock }: Held): Promise<void> {
    const { version } = lock;
    const question = () => use.life.remora.locks.check([{ name: use.lock, version }]);
    const asked = await this.#ask(use, 'check', question);
    if (asked.type !== 'answer' || asked.value[0] !== false || lock.remainingMs <= 0) return;
    throw new Violation('lock: a holder holds', `${use.owner} holds ${use.lock}; ${version} is not its version`);
  }

  /** From the request on nothing is certain: the shorter terms may count already. */
  async #change(held: Held): Promise<void> {
    const { use, lock, terms } = held;
    const { random } = use.life;
    const ttl = drawTtlMs(random, BOUNDS);
    this.#vouch(held, 0);
    const question = (): Promise<void> => {
      switch (terms.kind) {
        case 'session':
          return lock.extend();
        case 'condition':
          return lock.setCondition(drawCondition(use.life.random, BOUNDS));
        default:
          return lock.extend(ttl);
      }
    };
    const asked = await this.#ask(use, 'change of terms', question, NOT_CHANGED);
    if (terms.kind === 'fixed') held.limitMs = Math.max(held.limitMs, this.#latest(ttl));
    if (asked.type === 'refused' && asked.code === 'LOCK_NOT_HELD') {
      throw new Violation(
        'lock: a holder holds',
        `${use.owner} changes the terms of ${use.lock}, and is told: ${asked.error}`,
      );
    }
    if (asked.type === 'answer') this.#figures.changed++;
  }

  /** Released, left to expire, or relied upon until it is lost. */
  async #end(held: Held): Promise<void> {
    const { use, lock, terms } = held;
    const { random, clock } = use.life;
    const how = random.int(4);
    if (how === 0 && (isLimited(terms.kind) || terms.kind === 'session')) {
      const endMs = this.#world.loop.monotonicMs() + LAPSES_WITHIN_MS;
      while (lock.remainingMs > 0 && this.#world.loop.monotonicMs() < endMs && !this.#world.resting) {
        this.#vouch(held);
        await sleep(clock, LOOK_MS);
      }
    }
    this.#uses.over(use);
    if (lock.state === 'lost') return;
    if (how === 1 && terms.kind !== 'session') {
      this.#vouch(held);
      const asked = await this.#ask(use, 'leave to its time', () => lock.orphan(), NOT_CHANGED);
      if (asked.type === 'answer') this.#figures.orphaned++;
      return;
    }
    await this.#release(use, lock);
  }

  async #release(use: Use, lock: HeldLock): Promise<void> {
    this.#lapse({ type: 'given', lock: use.lock, version: lock.version });
    await this.#ask(use, 'release', () => lock.release(), NOT_CHANGED);
  }

  // ------------------------------------------------------------------------------------------ what is judged

  /** The time until which it is certain to be held, at least. */
  #vouch({ use, lock, limitMs }: Held, remainingMs = lock.remainingMs): void {
    const atMs = this.#world.loop.monotonicMs();
    const untilMs = atMs + remainingMs * (1 - DRIFT);
    this.#lapse({ type: 'vouched', lock: use.lock, version: lock.version, atMs, untilMs, limitMs });
  }

  /** The latest end of something that lasts this long from now on. */
  #latest(ms: number): number {
    return this.#world.loop.monotonicMs() + ms * (1 + DRIFT) + NOTICED_MS;
  }

  #delay({ delayMs }: Terms): { readonly delayMs: number } {
    return { delayMs: delayMs * (1 - DRIFT) };
  }

  #lapse(event: LapseEvent): void {
    this.#world.report(this.#lapses.observe(event));
  }

  #ask<T>({ life }: Use, what: string, question: () => Promise<T>, answers: Parameters<typeof ask>[2] = []) {
    return ask({ world: this.#world, life, what }, question, answers);
  }
}
