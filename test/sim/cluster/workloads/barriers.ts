/**
 * Barriers that are held while others wait at them, and double barriers, at which parties meet and leave.
 * `BarrierCheck` checks the promises.
 *
 * BR1. A holder relies on its barrier as long as the SDK reports that it holds it, and a party on being inside.
 */
import { sleep } from '@remora/base';
import type { BarrierStay, HeldLock } from 'remora';
import { BarrierCheck, type BarrierEvent } from '../../../checkers/index.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { type Answer, ask, think, withHands } from './ask.ts';
import { LOST, WAIT_MS_MAX } from './lock-hands.ts';
import type { MakeWorkload, Workload } from './workload.ts';

export const BARRIER = 'bar';
const MEETINGS = 'meet/';
/** How much less often than others this workload acts. */
const SELDOM = 3;
const HOLDS_MS_MAX = 2_000;
/** The interval of meetings: after a meeting is over it is unknown which parties still count. */
const MEETING_MS = 4_000;
const PARTIES_MIN = 2;
const PARTIES_SPREAD = 2;
const NOT_DONE = [...LOST, 'LOCK_TIMEOUT', 'LOCK_BUSY', 'CANCELED', 'LOCK_NOT_HELD'] as const;

interface Inside {
  readonly life: ClientLife;
  readonly meeting: string;
  readonly stay: BarrierStay;
}

export const barriers: MakeWorkload = (world) => new Barriers(world);

class Barriers implements Workload {
  readonly name = 'barriers';
  readonly #world: World;
  readonly #check = new BarrierCheck();
  /** By owner: the holder of the barrier, and the parties inside a meeting. */
  readonly #holds = new Map<string, { readonly life: ClientLife; readonly held: HeldLock }>();
  readonly #inside = new Map<string, Inside>();
  #asked = 0;
  readonly #figures = { held: 0, passed: 0, met: 0, parted: 0 };

  constructor(world: World) {
    this.#world = world;
  }

  run(life: ClientLife): Promise<void> {
    return withHands(this.#world, this.#world.options.hands, async () => {
      await think(this.#world, life, SELDOM);
      const kind = life.random.int(6);
      if (kind === 0) await this.#hold(life);
      else if (kind < 3) await this.#pass(life);
      else await this.#meet(life);
    });
  }

  ended(life: ClientLife): void {
    for (const [owner, { life: of }] of this.#holds) if (of === life) this.#down(owner);
    for (const [owner, { life: of }] of this.#inside) if (of === life) this.#leaves(owner);
  }

  check(): void {
    this.#world.report(this.#check.finish());
  }

  figures(): Readonly<Record<string, number>> {
    const { held, passed, met, parted } = this.#figures;
    return { 'barriers held': held, 'barriers passed': passed, 'parties that met': met, 'parties that parted': parted };
  }

  // ------------------------------------------------------------------------------------------ a barrier

  async #hold(life: ClientLife): Promise<void> {
    const { random, clock } = life;
    const owner = this.#name(life);
    const wait = random.int(2) === 0 ? 0 : 1 + random.int(WAIT_MS_MAX);
    const asked = await this.#ask(life, 'hold a barrier', () => life.remora.barrier(BARRIER).hold({ wait }));
    if (asked.type !== 'answer') return;
    const held = asked.value;
    this.#figures.held++;
    if (held.remainingMs > 0) {
      this.#holds.set(owner, { life, held });
      this.#see({ type: 'up', barrier: BARRIER, owner });
      await sleep(clock, random.int(HOLDS_MS_MAX));
      this.#down(owner);
    }
    await this.#ask(life, 'lift a barrier', () => held.release());
  }

  async #pass(life: ClientLife): Promise<void> {
    const owner = this.#name(life);
    const patient = life.random.int(2) === 0;
    const options = patient ? {} : { wait: 1 + life.random.int(WAIT_MS_MAX) };
    this.#see({ type: 'waits', barrier: BARRIER, owner });
    const asked = await this.#ask(life, 'wait at a barrier', () => life.remora.barrier(BARRIER).wait(options));
    if (asked.type !== 'answer') return;
    this.#figures.passed++;
    for (const [holder, { held }] of this.#holds) if (held.remainingMs <= 0) this.#down(holder); // BR1
    this.#see({ type: 'passed', barrier: BARRIER, owner });
  }

  #down(owner: string): void {
    if (this.#holds.delete(owner)) this.#see({ type: 'down', barrier: BARRIER, owner });
  }

  // ------------------------------------------------------------------------------------------ a double barrier

  async #meet(life: ClientLife): Promise<void> {
    const { random, clock } = life;
    const owner = this.#name(life);
    const number = Math.floor(this.#world.loop.monotonicMs() / MEETING_MS);
    const meeting = `${MEETINGS}${number}`;
    const parties = PARTIES_MIN + (number % PARTIES_SPREAD);
    this.#see({ type: 'enters', barrier: meeting, owner, parties });
    const barrier = life.remora.doubleBarrier(meeting, { parties });
    const wait = 1 + random.int(WAIT_MS_MAX);
    const asked = await this.#ask(life, 'enter', () => barrier.enter({ wait }));
    if (asked.type !== 'answer') return;
    const stay = asked.value;
    this.#figures.met++;
    this.#see({ type: 'entered', barrier: meeting, owner });
    this.#inside.set(owner, { life, meeting, stay });
    await sleep(clock, random.int(this.#world.options.thinkMs));
    this.#leaves(owner);
    await this.#part(owner, { life, meeting, stay });
  }

  async #part(owner: string, { life, meeting, stay }: Inside): Promise<void> {
    const wait = life.random.int(WAIT_MS_MAX);
    const left = await this.#ask(life, 'leave', () => stay.leave({ wait }));
    if (left.type !== 'answer') return;
    this.#figures.parted++;
    for (const [other, { meeting: at, stay: its }] of this.#inside) {
      if (at === meeting && its.state === 'lost') this.#leaves(other); // BR1
    }
    this.#see({ type: 'allLeft', barrier: meeting, owner });
    this.#see({ type: 'out', barrier: meeting, owner });
  }

  #leaves(owner: string): void {
    const inside = this.#inside.get(owner);
    if (inside === undefined) return;
    this.#inside.delete(owner);
    this.#see({ type: 'leaves', barrier: inside.meeting, owner });
  }

  #name({ name }: ClientLife): string {
    return `${name}:${this.#asked++}`;
  }

  #see(event: BarrierEvent): void {
    this.#world.report(this.#check.observe(event));
  }

  #ask<T>(life: ClientLife, what: string, question: () => Promise<T>): Promise<Answer<T>> {
    return ask({ world: this.#world, life, what }, question, NOT_DONE);
  }
}
