/**
 * Locks of all kinds, through the SDK: readers and writers, which convert while they hold, several locks at once, and
 * permits of a semaphore whose capacity changes meanwhile. `LockCheck` checks the promises to holders and waiters.
 *
 * LK1. A holder learns that it holds: whatever it does with the lock, no answer denies that while its session is
 *      certain to live.
 * LK2. The shown state of a lock is consistent: it is that of one moment.
 */
import { ServiceError, sleep } from '@remora/base';
import type { AcquireOptions, ClientSession, HeldLock, HeldLocks, Semaphore } from 'remora';
import type { LockMode } from '../../../checkers/index.ts';
import { inconsistencies } from '../../common/lock-state.ts';
import { Violation } from '../../common/violation.ts';
import { type ClientLife, lifeOf } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { type Answer, ask, think, withHands } from './ask.ts';
import { type Hand, LOST, LockHands, WAIT_MS_MAX } from './lock-hands.ts';
import { type Holding, LockUses, staysAlive, type Use } from './lock-uses.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const SEMAPHORE = 'sem';
export const KIND_LOCKS: readonly string[] = ['rw0', 'rw0', 'rw1', SEMAPHORE, SEMAPHORE];
/** Several at once: one to write, the other to read. */
const SEVERAL = [
  { lock: 'rw0', mode: 'exclusive' },
  { lock: 'rw1', mode: 'shared' },
] as const;
const CAPACITY = 3;
const CAPACITY_MAX = 4;
const PERMITS_MAX = 2;
const DEPTH_MAX = 2;
const UPGRADE_MS_MAX = 1_500;
const WORKS_MAX = 4;
/** How much less often than others this workload acquires, looks at locks, and changes the capacity. */
const ACQUIRES_SELDOM = 2;
const LOOKS_SELDOM = 3;
const RESIZES_SELDOM = 40;
const ASKED_AT_MOST = 5;
const NOT_ACQUIRED = [...LOST, 'LOCK_TIMEOUT', 'LOCK_BUSY', 'CANCELED'] as const;
/** The last one: the capacity was lowered meanwhile. */
const NOT_GIVEN = [...NOT_ACQUIRED, 'LOCK_PERMITS_EXCEEDED'] as const;
const NOT_ALL = [...NOT_ACQUIRED, 'LOCK_NOT_HELD'] as const;
const NOT_CONVERTED = [...NOT_ACQUIRED, 'LOCK_UPGRADE_CONFLICT', 'LOCK_NOT_HELD'] as const;

export const lockKinds: MakeWorkload = (world) => new LockKinds(world);

class LockKinds implements Workload {
  readonly name = 'locks of all kinds';
  readonly #world: World;
  readonly #uses: LockUses;
  readonly #hands: LockHands;
  /** The capacity is being changed, or the outcome of that is unknown. */
  #resizing = false;
  readonly #figures = { granted: 0, together: 0, upgraded: 0, conflicts: 0, downgraded: 0, resized: 0, several: 0 };

  constructor(world: World) {
    this.#world = world;
    this.#uses = new LockUses(world);
    this.#hands = new LockHands(world, this.#uses);
    this.#uses.capacity(SEMAPHORE, CAPACITY, false);
  }

  async run(life: ClientLife): Promise<void> {
    const acquiring = this.#hands.work(life, ACQUIRES_SELDOM, (hand) => this.#one(hand));
    const looking = withHands(this.#world, 1, async () => {
      await think(this.#world, life, LOOKS_SELDOM);
      await this.#show(life);
    });
    const resizing = withHands(this.#world, 1, async () => {
      await think(this.#world, life, RESIZES_SELDOM);
      await this.#resize(life);
    });
    await Promise.all([acquiring, looking, resizing]);
  }

  missing(): string {
    return this.#uses.open();
  }

  ended(life: ClientLife): void {
    this.#uses.ended((use) => use.life === life);
  }

  /** The capacity is reset, so that nothing needs to be left. */
  async check(): Promise<void> {
    this.#uses.finish();
    const [client] = this.#world.clients;
    if (client !== undefined) await untilAnswered(() => semaphoreOf(lifeOf(client).remora).resetPermits());
  }

  figures(): Readonly<Record<string, number>> {
    const { granted, together, upgraded, conflicts, downgraded, resized, several } = this.#figures;
    return {
      'locks of kinds granted': granted,
      'held together': together,
      upgraded,
      'upgrades refused': conflicts,
      downgraded,
      'semaphores resized': resized,
      'several held at once': several,
    };
  }

  // ------------------------------------------------------------------------------------------ who acquires

  async #one(hand: Hand): Promise<void> {
    const { random } = hand.life;
    const session = random.int(4) === 0 ? undefined : await this.#hands.session(hand);
    if (random.int(5) === 0) return this.#several(hand, session);
    const lock = KIND_LOCKS[random.int(KIND_LOCKS.length)] ?? SEMAPHORE;
    const use: Use = {
      ...this.#hands.newUse(hand, session, lock),
      mode: modeFor(lock, random.int(3)),
      permits: lock === SEMAPHORE ? 1 + random.int(PERMITS_MAX) : 0,
    };
    const held = await this.#acquire(use);
    if (held === undefined) return;
    this.#figures.granted++;
    if (this.#uses.holdersBeside(use) > 0) this.#figures.together++;
    await this.#hold(use, held);
    this.#uses.over(use);
    const ended = this.#hands.endsWith(hand, use);
    if (ended === undefined) return this.#release(use, held);
    await this.#ask(hand.life, 'end of session', () => ended.close(), LOST);
  }

  /** All or none. */
  async #several(hand: Hand, session: ClientSession | undefined): Promise<void> {
    const { life, name } = hand;
    const { random, clock } = life;
    const { elections } = this.#world;
    const uses = SEVERAL.map(
      (one): Use => ({
        ...one,
        life,
        session,
        patient: false,
        electionsBefore: elections,
        owner: `${name}:${hand.asked++}`,
      }),
    );
    for (const use of uses) this.#uses.asked(use);
    const set = (session ?? life.remora).lockAll(
      SEVERAL.map(({ lock, mode }) => ({ lock, shared: mode === 'shared' })),
    );
    const wait = 1 + random.int(WAIT_MS_MAX);
    const asked = await this.#ask(life, 'acquire several', () => set.acquire({ wait }), NOT_ALL);
    const all = asked.type === 'answer' ? asked.value : undefined;
    if (all?.state === 'active') {
      for (const [i, use] of uses.entries()) this.#uses.granted(use, oneOf(all, i, use));
      this.#figures.several++;
      await sleep(clock, random.int(this.#world.options.thinkMs));
    }
    for (const use of uses) this.#uses.over(use);
    if (all !== undefined) await this.#ask(life, 'release several', () => all.release(), [...LOST, 'LOCK_NOT_HELD']);
  }

  async #acquire(use: Use): Promise<HeldLock | undefined> {
    const { life, owner: token, patient } = use;
    const { random } = life;
    const controller = new AbortController();
    const options: AcquireOptions = { token, depthMax: DEPTH_MAX, signal: controller.signal };
    const wait = patient ? undefined : random.int(3) === 0 ? 0 : 1 + random.int(WAIT_MS_MAX);
    this.#uses.asked(use);
    const giveUp = this.#hands.givesUp(use, controller);
    const errors = use.lock === SEMAPHORE ? NOT_GIVEN : NOT_ACQUIRED;
    const asked = await this.#ask(life, 'acquire', () => acquire(use, { ...options, wait }), errors);
    giveUp?.cancel();
    const held = asked.type === 'answer' ? asked.value : undefined;
    if (this.#hands.relies(use, held)) return held;
    // Others wait for it.
    if (held !== undefined) await this.#release(use, held);
    return undefined;
  }

  // ------------------------------------------------------------------------------------------ who holds

  async #hold(use: Use, held: HeldLock): Promise<void> {
    const { random, clock } = use.life;
    for (let works = random.int(WORKS_MAX); works > 0 && held.state === 'active'; works--) {
      const kind = random.int(4);
      if (kind === 0) await this.#checkHeld(use, held);
      else if (kind === 1) await this.#reenter(use, held);
      else if (held.mode === 'shared') await this.#upgrade(use, held);
      else if (held.mode === 'exclusive') await this.#downgrade(use, held);
      await sleep(clock, random.int(this.#world.options.thinkMs));
    }
    while (held.depth > 1 && held.state !== 'lost') await this.#release(use, held);
  }

  /** LK1. */
  async #checkHeld(use: Use, { version }: HeldLock): Promise<void> {
    const question = () => use.life.remora.locks.check([{ name: use.lock, version }]);
    const asked = await this.#ask(use.life, 'check', question);
    if (asked.type === 'answer' && asked.value[0] === false) this.#holds(use, `version ${version} is not current`);
  }

  async #reenter(use: Use, held: HeldLock): Promise<void> {
    const answers = [...LOST, 'LOCK_NOT_HELD', 'LOCK_DEPTH_EXCEEDED'] as const;
    const asked = await this.#ask(use.life, 'reenter', () => held.acquire({ depthMax: DEPTH_MAX }), answers);
    if (asked.type === 'refused' && asked.code === 'LOCK_NOT_HELD') this.#holds(use, 'it was entered again');
  }

  async #upgrade(use: Use, held: HeldLock): Promise<void> {
    const { random } = use.life;
    this.#uses.converting(use);
    const wait = random.int(4) === 0 ? 0 : 1 + random.int(UPGRADE_MS_MAX);
    const asked = await this.#ask(use.life, 'upgrade', () => held.upgrade({ wait }), NOT_CONVERTED);
    this.#converted(use, held, asked);
    if (asked.type === 'answer') this.#figures.upgraded++;
    if (asked.type === 'refused' && asked.code === 'LOCK_UPGRADE_CONFLICT') this.#figures.conflicts++;
  }

  async #downgrade(use: Use, held: HeldLock): Promise<void> {
    this.#uses.converting(use);
    const asked = await this.#ask(use.life, 'downgrade', () => held.downgrade(), NOT_CONVERTED);
    this.#converted(use, held, asked);
    if (asked.type === 'answer') this.#figures.downgraded++;
  }

  #converted(use: Use, held: HeldLock, asked: Answer<unknown>): void {
    if (asked.type === 'refused' && asked.code === 'LOCK_NOT_HELD') this.#holds(use, 'it was to be held otherwise');
    if (held.remainingMs > 0) this.#uses.converted(use, held);
    else this.#uses.over(use);
  }

  /** LK1. */
  #holds(use: Use, what: string): void {
    if (!staysAlive(use)) return;
    throw new Violation('lock: a holder holds', `${use.owner} holds ${use.lock}; ${what}, and it was told otherwise`);
  }

  async #release({ life }: Use, held: HeldLock): Promise<void> {
    await this.#ask(life, 'release', () => held.release(), [...LOST, 'LOCK_NOT_HELD']);
  }

  // ------------------------------------------------------------------------------------------ who looks on

  /** LK2. */
  async #show(life: ClientLife): Promise<void> {
    const lock = KIND_LOCKS[life.random.int(KIND_LOCKS.length)] ?? SEMAPHORE;
    const asked = await this.#ask(life, 'show', () => life.remora.locks.show(lock));
    if (asked.type !== 'answer' || asked.value === undefined) return;
    for (const what of inconsistencies(asked.value)) throw new Violation('lock: shown as it is', `${lock}: ${what}`);
    const waiting = asked.value.waiters.filter(({ mode }) => mode !== 'upgrade');
    this.#uses.queued(lock, new Set(waiting.map(({ owner }) => owner.id)));
  }

  /** One after another; stops once the capacity is unknown. */
  async #resize(life: ClientLife): Promise<void> {
    if (this.#resizing) return;
    this.#resizing = true;
    const capacity = 1 + life.random.int(CAPACITY_MAX);
    this.#uses.capacity(SEMAPHORE, capacity, false);
    const asked = await this.#ask(life, 'permits', () => semaphoreOf(life.remora).setPermits(capacity));
    if (asked.type !== 'answer') return;
    this.#uses.capacity(SEMAPHORE, capacity, true);
    this.#figures.resized++;
    this.#resizing = false;
  }

  #ask<T>(life: ClientLife, what: string, question: () => Promise<T>, answers: Parameters<typeof ask>[2] = []) {
    return ask({ world: this.#world, life, what }, question, answers);
  }
}

/** One of the locks that are held together. */
function oneOf(all: HeldLocks, i: number, { mode }: Use): Holding {
  const version = all.versions[i] ?? 0;
  return {
    ...{ version, mode, depth: 1 },
    get state() {
      return all.state;
    },
    get remainingMs() {
      return all.remainingMs;
    },
  };
}

function modeFor(lock: string, drawn: number): LockMode {
  if (lock === SEMAPHORE) return 'permits';
  return drawn === 0 ? 'exclusive' : 'shared';
}

function acquire({ life, session, lock, mode, permits = 1 }: Use, options: AcquireOptions): Promise<HeldLock> {
  const from = session ?? life.remora;
  if (mode === 'permits') return semaphoreOf(from).acquire({ ...options, permits });
  return mode === 'shared' ? from.rwLock(lock).read(options) : from.rwLock(lock).write(options);
}

function semaphoreOf(from: Pick<ClientSession, 'semaphore'>): Semaphore {
  return from.semaphore(SEMAPHORE, { permits: CAPACITY });
}

/** Broken links are noticed only some time after the last fault: requests on them are lost, and repeated. */
async function untilAnswered(ask: () => Promise<unknown>): Promise<void> {
  for (let left = ASKED_AT_MOST; ; left--) {
    try {
      await ask();
      return;
    } catch (error) {
      const isLost = error instanceof ServiceError && ['UNKNOWN_OUTCOME', 'DEADLINE_EXCEEDED'].includes(error.code);
      if (!isLost || left <= 1) throw error;
    }
  }
}
