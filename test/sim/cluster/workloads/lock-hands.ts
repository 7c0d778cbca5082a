/**
 * Shared by all lock workloads: several hands of a client, each with a session of its own for some of its acquires.
 * Hands sometimes give up, and sometimes end by their session instead of a release.
 */
import { assert, type Timer } from '@remora/base';
import type { ClientSession, HeldLock } from 'remora';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { ask, think, withHands } from './ask.ts';
import type { LockUses, Use } from './lock-uses.ts';

export interface Hand {
  readonly life: ClientLife;
  readonly name: string;
  asked: number;
  session: ClientSession | undefined;
}

/** Possible answer to any request about a lock: its session is over. */
export const LOST = ['SESSION_EXPIRED', 'LEASE_NOT_FOUND'] as const;
export const WAIT_MS_MAX = 6_000;
const SESSION_TTL_MS_MIN = 1_000;
const SESSION_TTL_MS_SPREAD = 4_000;

export class LockHands {
  readonly #world: World;
  readonly #uses: LockUses;

  constructor(world: World, uses: LockUses) {
    this.#world = world;
    this.#uses = uses;
  }

  /** Each hand of a client does one thing after another. `seldom`: how much less often than in other workloads. */
  work(life: ClientLife, seldom: number, one: (hand: Hand) => Promise<void>): Promise<void> {
    const names = Array.from({ length: this.#world.options.hands }, (_, i) => `${life.name}/${i}`);
    const hands = names.map((name): Hand => ({ life, name, asked: 0, session: undefined }));
    return withHands(this.#world, hands.length, async (i) => {
      const hand = hands[i];
      assert(hand !== undefined, 'each has its place');
      await think(this.#world, life, seldom);
      await one(hand);
    });
  }

  /** Sometimes with a short TTL, so that a pause or a partition ends it. */
  async session(hand: Hand): Promise<ClientSession | undefined> {
    const { life, session } = hand;
    if (session !== undefined && session.state !== 'lost') return session;
    const ttl = SESSION_TTL_MS_MIN + life.random.int(SESSION_TTL_MS_SPREAD);
    const asked = await ask({ world: this.#world, life, what: 'session' }, () => life.remora.session({ ttl }));
    hand.session = asked.type === 'answer' ? asked.value : undefined;
    return hand.session;
  }

  /** A use that wants the lock exclusively. */
  newUse(hand: Hand, session: ClientSession | undefined, lock: string): Use {
    const { life, name } = hand;
    return {
      ...{ owner: `${name}:${hand.asked++}`, lock, mode: 'exclusive', life, session },
      patient: life.random.int(2) === 0,
      electionsBefore: this.#world.elections,
    };
  }

  /** Sometimes a waiter gives up. */
  givesUp(use: Use, controller: AbortController): Timer | undefined {
    const { random, clock } = use.life;
    if (random.int(3) > 0) return undefined;
    return clock.setTimer(random.int(WAIT_MS_MAX), () => {
      this.#uses.waitsNoMore(use);
      controller.abort();
    });
  }

  /**
   * Whether it relies on its grant: a holder without contact to the cluster, or whose grant came too late, releases it.
   */
  relies(use: Use, held: HeldLock | undefined): boolean {
    if (held?.state === 'active' && this.#uses.granted(use, held)) return true;
    this.#uses.over(use);
    return false;
  }

  /**
   * Sometimes returns the session, whose end releases everything; otherwise undefined, and the lock must be released.
   */
  endsWith(hand: Hand, { session }: Use): ClientSession | undefined {
    if (session === undefined || hand.life.random.int(8) > 0) return undefined;
    hand.session = undefined;
    return session;
  }
}
