/**
 * Elections: candidates, leaders that proclaim, resign or vanish, processes that continue an earlier one's leadership,
 * and observers.
 *
 * EN1. One leads at a time, and leaderships have growing versions (`LockCheck`).
 * EN2. Observers receive the truth, in order (`ElectionCheck`), and in the end that there is no leader if there is
 *      none.
 * EN3. A process that continues a leadership has it under the same version, unless its session had ended.
 */
import { assert, sleep, utf8 } from '@remora/base';
import type { Election, Leader, Leadership, LeadershipHandle } from 'remora';
import { ElectionCheck, type ElectionEvent, type Told } from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { type Answer, ask, think, withHands } from './ask.ts';
import { type Hand, LOST, LockHands, WAIT_MS_MAX } from './lock-hands.ts';
import { type Holding, LockUses, type Use } from './lock-uses.ts';
import type { MakeWorkload, Workload } from './workload.ts';

export const ELECTIONS: readonly string[] = ['elect0', 'elect1'];
/** How much less often than others this workload campaigns, and asks for the leader. */
const CAMPAIGNS_SELDOM = 3;
const ASKS_SELDOM = 6;
const PROCLAMATIONS_MAX = 5;
/** Some lead for longer than any vanished process is away. */
const LEADS_MS_MAX = 4_000;
const NOT_ELECTED = [...LOST, 'LOCK_TIMEOUT', 'LOCK_BUSY', 'CANCELED'] as const;
const NOT_PROCLAIMED = [...LOST, 'LOCK_NOT_HELD'] as const;

/** A leadership of this process, or one that an earlier process had when it vanished. */
interface Led {
  readonly use: Use;
  readonly handle: LeadershipHandle;
  readonly version: number;
  said: number;
  /** The outcome of its last proclamation is unknown: no other may follow it. */
  unsure: boolean;
}

interface Observer {
  readonly life: ClientLife;
  last: Told | undefined;
}

export const elections: MakeWorkload = (world) => new Elections(world);

class Elections implements Workload {
  readonly name = 'elections';
  readonly #world: World;
  readonly #uses: LockUses;
  readonly #hands: LockHands;
  readonly #truth = new ElectionCheck();
  readonly #leading = new Set<Led>();
  /** By client: the leaderships of vanished processes. */
  readonly #left = new Map<number, Led[]>();
  readonly #observers = new Set<Observer>();
  readonly #figures = { elected: 0, proclaimed: 0, observed: 0, resumed: 0 };

  constructor(world: World) {
    this.#world = world;
    this.#uses = new LockUses(world);
    this.#hands = new LockHands(world, this.#uses);
  }

  async run(life: ClientLife): Promise<void> {
    for (const name of ELECTIONS) this.#observe(life, name).catch((error: unknown) => this.#world.fail(error));
    const campaigning = this.#hands.work(life, CAMPAIGNS_SELDOM, (hand) => this.#one(hand));
    const asking = withHands(this.#world, 1, async () => {
      await think(this.#world, life, ASKS_SELDOM);
      await this.#askWhoLeads(life);
    });
    await Promise.all([campaigning, asking]);
  }

  missing(): string {
    const open = this.#uses.open();
    const misled = [...this.#observers].find(({ last }) => last !== undefined);
    return misled === undefined ? open : `${misled.life.name} was last told that ${misled.last?.leader} leads, ${open}`;
  }

  ended(life: ClientLife): void {
    const left = [...this.#leading].filter(({ use }) => use.life === life);
    this.#left.set(life.client.id, left);
    for (const led of left) this.#leading.delete(led);
    for (const observer of this.#observers) if (observer.life === life) this.#observers.delete(observer);
    this.#uses.ended((use) => use.life === life);
  }

  check(): void {
    this.#uses.finish();
  }

  figures(): Readonly<Record<string, number>> {
    const { elected, proclaimed, observed, resumed } = this.#figures;
    return { elected, proclaimed, 'leaders observed': observed, 'leaderships resumed': resumed };
  }

  // ------------------------------------------------------------------------------------------ who campaigns

  async #one(hand: Hand): Promise<void> {
    const earlier = this.#left.get(hand.life.client.id)?.pop();
    if (earlier !== undefined) return this.#goOn(hand, earlier);
    const name = ELECTIONS[hand.life.random.int(ELECTIONS.length)] ?? '';
    // With a lease of its own, its user does not know how long it is certain to be in the queue.
    const use = this.#hands.newUse(hand, undefined, name);
    const leadership = await this.#campaign(use);
    if (leadership === undefined) return;
    this.#figures.elected++;
    await this.#lead(
      { use, handle: leadership.handle, version: leadership.version, said: 0, unsure: false },
      leadership,
    );
  }

  async #campaign(use: Use): Promise<Leadership | undefined> {
    const { life, owner, patient, lock } = use;
    const { random } = life;
    const controller = new AbortController();
    const wait = patient ? {} : { wait: random.int(3) === 0 ? 0 : 1 + random.int(WAIT_MS_MAX) };
    this.#uses.asked(use);
    this.#see({ type: 'says', election: lock, leader: owner, count: 0 });
    const giveUp = this.#hands.givesUp(use, controller);
    const asked = await this.#ask(
      life,
      'campaign',
      () => life.remora.election(lock).campaign({ ...wait, value: textOf(owner, 0), signal: controller.signal }),
      NOT_ELECTED,
    );
    giveUp?.cancel();
    const leadership = asked.type === 'answer' ? asked.value : undefined;
    if (leadership !== undefined && leadership.state !== 'lost') {
      this.#uses.granted(use, holdingOf(leadership));
      this.#see({ type: 'acknowledged', election: lock, leader: owner, count: 0, version: leadership.version });
      return leadership;
    }
    this.#uses.over(use);
    if (leadership !== undefined) await this.#resign(life, leadership);
    return undefined;
  }

  /** EN3. The leader's process has vanished; this is another process of the same client. */
  async #goOn({ life }: Hand, led: Led): Promise<void> {
    const { use: before, handle, version } = led;
    const { lock, owner } = before;
    const election = life.remora.election(lock);
    const asked = await this.#ask(life, 'resume', () => election.resume(handle, { wait: WAIT_MS_MAX }), NOT_ELECTED);
    if (asked.type !== 'answer') return;
    const leadership = asked.value;
    if (leadership.version !== version) {
      const what = `${owner} led ${lock} with version ${version}, and goes on with ${leadership.version}`;
      throw new Violation('election: who goes on has its version', what);
    }
    if (leadership.state === 'lost') return this.#resign(life, leadership);
    const use: Use = { ...before, life };
    this.#figures.resumed++;
    this.#uses.resumed(use, holdingOf(leadership));
    await this.#lead({ ...led, use }, leadership);
  }

  async #lead(led: Led, leadership: Leadership): Promise<void> {
    const { use, version } = led;
    const { life, lock, owner: leader } = use;
    const { random, clock } = life;
    this.#leading.add(led);
    for (let left = random.int(PROCLAMATIONS_MAX); left > 0 && leadership.state !== 'lost' && !led.unsure; left--) {
      const count = ++led.said;
      led.unsure = true;
      this.#see({ type: 'says', election: lock, leader, count });
      const asked = await this.#ask(life, 'proclaim', () => leadership.proclaim(textOf(leader, count)), NOT_PROCLAIMED);
      if (asked.type === 'refused' && asked.code === 'LOCK_NOT_HELD') {
        throw new Violation('lock: a holder holds', `${leader} leads ${lock}, and is told that it does not`);
      }
      if (asked.type === 'answer') {
        this.#figures.proclaimed++;
        led.unsure = false;
        this.#see({ type: 'acknowledged', election: lock, leader, count, version });
      }
      await sleep(clock, random.int(this.#world.options.thinkMs));
    }
    if (random.int(2) === 0 && !this.#world.resting) await sleep(clock, random.int(LEADS_MS_MAX));
    this.#leading.delete(led);
    this.#uses.over(use);
    await this.#resign(life, leadership);
  }

  async #resign(life: ClientLife, leadership: Leadership): Promise<void> {
    await this.#ask(life, 'resign', () => leadership.release(), NOT_PROCLAIMED);
  }

  // ------------------------------------------------------------------------------------------ who looks on

  /** For as long as the client exists. */
  async #observe(life: ClientLife, election: string): Promise<void> {
    const name = `${life.name} at ${election}`;
    const observer: Observer = { life, last: undefined };
    this.#observers.add(observer);
    for await (const leader of life.remora.election(election).observe()) {
      observer.last = toldOf(leader);
      this.#figures.observed++;
      this.#see({ type: 'observed', election, observer: name, told: observer.last });
    }
  }

  async #askWhoLeads(life: ClientLife): Promise<void> {
    const name = ELECTIONS[life.random.int(ELECTIONS.length)] ?? '';
    const election: Election = life.remora.election(name);
    this.#see({ type: 'asks', election: name, asker: life.name });
    const asked = await this.#ask(life, 'who leads', () => election.leader());
    if (asked.type !== 'answer') return;
    this.#see({ type: 'answered', election: name, asker: life.name, told: toldOf(asked.value) });
  }

  #see(event: ElectionEvent): void {
    this.#world.report(this.#truth.observe(event));
  }

  #ask<T>(
    life: ClientLife,
    what: string,
    question: () => Promise<T>,
    answers: Parameters<typeof ask>[2] = [],
  ): Promise<Answer<T>> {
    return ask({ world: this.#world, life, what }, question, answers);
  }
}

/** The text of a leader's proclamation, with the leader and a number. */
function textOf(leader: string, count: number): Uint8Array {
  return utf8(`${leader} ${count}`);
}

function toldOf(leader: Leader | undefined): Told | undefined {
  if (leader === undefined) return undefined;
  const [name, count] = Buffer.from(leader.value).toString().split(' ');
  assert(name !== undefined && count !== undefined, 'what is proclaimed was said here');
  return { leader: name, count: Number(count), version: leader.version };
}

/** A leadership reports whether it is certain, but not for how long. */
function holdingOf(leadership: Leadership): Holding {
  return {
    ...{ version: leadership.version, mode: 'exclusive', depth: 1 },
    get state() {
      return leadership.state;
    },
    get remainingMs() {
      return leadership.state === 'active' || leadership.state === 'suspended' ? 1 : 0;
    },
  };
}
