/**
 * Clients that share locks, upgrade and downgrade them, and hold permits, while their ranges split and merge.
 *
 * KL1. The answers that they receive and rely on satisfy what `LockCheck` promises.
 * KL2. A holder is recognized as such: a check of its version, a reentrant acquire, an upgrade or a downgrade finds it
 *      holding.
 * KL3. The shown state is consistent: there is no holder beside an exclusive one, there is at most one upgrade, and
 *      permits are counted right.
 * KL4. In the end nothing is left of any lock.
 */
import type { Random } from '@remora/base';
import { type AcquireAs, type LockCommand, type LockResult, type LockState, ownerId } from '@remora/lock';
import { LockCheck, type LockEvent, type LockMode } from '../../checkers/index.ts';
import { inconsistencies } from '../common/lock-state.ts';
import type { RangeCluster } from './bed.ts';
import { type LockSession, LockSessions, type Told } from './lock-session.ts';

/** One acquire and everything that follows from it. */
interface Use {
  readonly name: string;
  readonly lock: string;
  readonly session: LockSession;
  readonly token: string;
  readonly permits: number;
  mode: LockMode;
  /** The attempt number of its latest acquire or upgrade. */
  attempt: number;
  /** The version of its grant. 0: it is waiting. */
  version: number;
}

const LOCKS = ['rw0', 'rw0', 'rw1', 'sem', 'sem'];
const SEMAPHORE = 'sem';
const CAPACITY = 3;
const CAPACITY_MAX = 4;
const DEPTH_MAX = 2;
/** How often a downgrade is sent until it is answered. */
const TRIES = 3;
/** A waiting client may get one of these answers without any mistake. */
const ANSWERS: readonly (string | undefined)[] = ['LOCK_TIMEOUT', 'LOCK_PERMITS_EXCEEDED'];

export class KindsLoad {
  readonly #random: Random;
  readonly #sessions: LockSessions;
  readonly #check = new LockCheck();
  /** The uses that wait or hold. */
  readonly #open = new Map<string, Use>();
  #uses = 0;
  readonly figures = {
    granted: 0,
    together: 0,
    upgraded: 0,
    conflicts: 0,
    downgraded: 0,
    permits: 0,
    resized: 0,
    queued: 0,
  };

  constructor(bed: RangeCluster) {
    this.#random = bed.random;
    this.#sessions = new LockSessions(bed);
    this.#see({ type: 'capacity', lock: SEMAPHORE, capacity: CAPACITY, settled: false });
  }

  get faults(): readonly string[] {
    return this.#sessions.faults;
  }

  async client(untilMs: number): Promise<void> {
    while (this.#sessions.nowMs < untilMs) {
      await this.#pause(100);
      const session = await this.#sessions.open();
      while (session?.valid && !session.over && this.#sessions.nowMs < untilMs) {
        await this.#use(session);
        await this.#pause(40);
      }
      // The session is renewed no longer. It expires, and ends everything that depends on it.
      if (session !== undefined) session.over = true;
    }
  }

  /** Shows locks and checks the listed waiters. */
  async looker(untilMs: number): Promise<void> {
    while (this.#sessions.nowMs < untilMs) {
      await this.#pause(120);
      const lock = LOCKS[this.#random.int(LOCKS.length)] ?? SEMAPHORE;
      const shown = await this.#sessions.look({ type: 'show', lock: lockId(lock), allKinds: true });
      if (shown?.type === 'show' && shown.state !== undefined) this.#shown(lock, shown.state);
    }
  }

  /** Changes the number of permits, until the current number is unknown. */
  async operator(untilMs: number): Promise<void> {
    while (this.#sessions.nowMs < untilMs) {
      await this.#pause(900);
      const capacity = 1 + this.#random.int(CAPACITY_MAX);
      this.#see({ type: 'capacity', lock: SEMAPHORE, capacity, settled: false });
      const { result } = await this.#sessions.lock({ type: 'setCapacity', lock: lockId(SEMAPHORE), capacity });
      if (result?.type !== 'capacity') return;
      this.figures.resized++;
      this.#see({ type: 'capacity', lock: SEMAPHORE, capacity, settled: true });
    }
  }

  /** Deletes the capacity, so that nothing needs to be left (KL4). */
  async end(): Promise<void> {
    const command = { type: 'setCapacity', lock: lockId(SEMAPHORE), capacity: 0 } as const;
    for (let i = 0; i < TRIES; i++) if ((await this.#sessions.lock(command)).result?.type === 'capacity') return;
    this.#fault('KL4', 'a healed cluster did not set a capacity');
  }

  check(): readonly string[] {
    for (const use of [...this.#open.values()]) this.#over(use);
    this.#note(this.#check.finish());
    return this.faults;
  }

  // ------------------------------------------------------------------------------------------ acquire

  async #use(session: LockSession): Promise<void> {
    const lock = LOCKS[this.#random.int(LOCKS.length)] ?? SEMAPHORE;
    const isSemaphore = lock === SEMAPHORE;
    const token = `t${++this.#uses}`;
    const use: Use = {
      ...{ lock, session, token, name: `${session.ref.lease}/${token}`, attempt: 1, version: 0 },
      permits: isSemaphore ? 1 + this.#random.int(2) : 0,
      mode: isSemaphore ? 'permits' : this.#random.int(3) > 0 ? 'shared' : 'exclusive',
    };
    this.#open.set(use.name, use);
    this.#see({ type: 'asked', lock, owner: use.name, mode: use.mode, permits: use.permits });
    const waits = this.#random.int(5) > 0;
    const waitMs = 200 + this.#random.int(2_500);
    const told = await this.#sessions.lock(acquire(use, asOf(use), waits), waits ? waitMs : undefined);
    if (told.result?.type === 'granted') return this.#granted(use, told.result.version);
    this.#over(use);
    if (told.result?.type === 'busy') return;
    if (refusalOf(told) === 'SESSION_EXPIRED') return session.gone('an acquire');
    const answered = ANSWERS.includes(refusalOf(told));
    if (told.result !== undefined && !answered) this.#fault('KL2', `an acquire was answered ${textOf(told)}`);
    if (!(await this.#cancel(use))) session.over = true;
  }

  async #granted(use: Use, version: number): Promise<void> {
    // A grant is not used if it arrives after the session's end by the client's own reckoning. The SDK does the same.
    if (!use.session.valid) return this.#over(use);
    this.figures.granted++;
    if (use.mode === 'permits') this.figures.permits++;
    this.#seeGrant(use, version);
    for (let works = this.#random.int(4); works > 0 && use.session.valid; works--) {
      await this.#pause(150);
      await this.#work(use);
      if (use.session.over) return;
    }
    // Now and then forgets everything: the session expires, and the lock is released with it.
    if (this.#random.int(10) === 0) use.session.over = true;
    else await this.#release(use);
  }

  async #cancel(use: Use): Promise<boolean> {
    const { result } = await this.#sessions.lock({ ...ofOwner(use), type: 'cancel', deadlineMs: 0 });
    return result?.type === 'canceled';
  }

  async #release(use: Use): Promise<void> {
    const relied = use.session.valid;
    this.#over(use);
    const told = await this.#sessions.lock({ ...ofOwner(use), type: 'release', all: true, deadlineMs: 0 });
    if (told.result?.type === 'released') return;
    if (told.result !== undefined && relied && use.session.valid)
      this.#fault('KL2', `a release was answered ${textOf(told)}`);
    use.session.over = true;
  }

  // ------------------------------------------------------------------------------------------ while held

  async #work(use: Use): Promise<void> {
    const kind = this.#random.int(4);
    if (kind === 0) return this.#isHeld(use);
    if (kind === 1) return this.#reenter(use);
    if (use.mode === 'shared') return this.#upgrade(use);
    if (use.mode === 'exclusive') return this.#downgrade(use);
  }

  /** KL2. */
  async #isHeld(use: Use): Promise<void> {
    const { version } = use;
    const checked = await this.#sessions.look({ type: 'check', checks: [{ lock: lockId(use.lock), version }] });
    if (checked?.type !== 'check' || checked.current[0] === true || !use.session.valid) return;
    this.#fault('KL2', `${use.name} holds ${use.lock} with ${version}, which is not current`);
  }

  async #reenter(use: Use): Promise<void> {
    use.attempt++;
    const told = await this.#sessions.lock(acquire(use, asOf(use), false));
    const { result } = told;
    if (result?.type === 'granted' && result.version === use.version) return;
    if (refusalOf(told) === 'LOCK_DEPTH_EXCEEDED') return;
    if (result !== undefined && use.session.valid) this.#fault('KL2', `${use.name} entered again: ${textOf(told)}`);
    this.#abandon(use);
  }

  async #upgrade(use: Use): Promise<void> {
    use.attempt++;
    this.#see({ type: 'converting', lock: use.lock, owner: use.name });
    const waits = this.#random.int(4) > 0;
    const command = acquire(use, { type: 'upgrade' }, waits);
    const told = await this.#sessions.lock(command, waits ? 100 + this.#random.int(1_500) : undefined);
    if (!use.session.valid) return this.#abandon(use);
    if (told.result?.type === 'granted') {
      this.figures.upgraded++;
      use.mode = 'exclusive';
      return this.#seeGrant(use, told.result.version);
    }
    const code = refusalOf(told);
    if (code === 'LOCK_UPGRADE_CONFLICT') this.figures.conflicts++;
    else if (code === 'LOCK_NOT_HELD') this.#fault('KL2', `${use.name} upgraded ${use.lock}, which it holds: ${code}`);
    if (code === 'LOCK_UPGRADE_CONFLICT' || told.result?.type === 'busy') return;
    await this.#shareFromNowOn(use);
  }

  async #downgrade(use: Use): Promise<void> {
    this.figures.downgraded++;
    await this.#shareFromNowOn(use);
  }

  /** Cancels an upgrade, or downgrades after it. */
  async #shareFromNowOn(use: Use): Promise<void> {
    this.#see({ type: 'converting', lock: use.lock, owner: use.name });
    use.mode = 'shared';
    for (let i = 0; i < TRIES && use.session.valid; i++) {
      const told = await this.#sessions.lock({ ...ofOwner(use), type: 'downgrade' });
      if (!use.session.valid) break;
      if (told.result?.type === 'granted') return this.#seeGrant(use, told.result.version);
      if (told.result === undefined) continue;
      this.#fault('KL2', `${use.name} downgraded ${use.lock}, which it holds: ${textOf(told)}`);
      break;
    }
    this.#abandon(use);
  }

  // ------------------------------------------------------------------------------------------ what is seen

  /** KL3. */
  #shown(lock: string, state: LockState): void {
    for (const what of inconsistencies(state)) this.#fault('KL3', `${lock}: ${what}`);
    const { waiters } = state;
    this.#forgetLosers();
    for (const { owner, mode } of waiters) {
      const use = [...this.#open.values()].find(({ session, token }) => {
        return session.ref.lease === owner.session.lease && ownerId(token) === owner.id;
      });
      if (use === undefined || use.version > 0 || mode === 'upgrade') continue;
      this.figures.queued++;
      this.#see({ type: 'queued', lock, owner: use.name });
    }
  }

  #seeGrant(use: Use, version: number): void {
    this.#forgetLosers();
    const { lock, name, mode, permits } = use;
    const others = [...this.#open.values()].filter(
      (other) => other !== use && other.lock === lock && other.version > 0,
    );
    if (others.length > 0) this.figures.together++;
    use.version = version;
    this.#see({ type: 'granted', lock, owner: name, mode, version, ...(permits > 0 ? { permits } : {}) });
  }

  /** A client whose session may be over relies on nothing any more. */
  #forgetLosers(): void {
    for (const use of [...this.#open.values()]) if (!use.session.valid) this.#over(use);
  }

  /** It no longer waits for the lock or relies on it. */
  #over(use: Use): void {
    if (!this.#open.delete(use.name)) return;
    this.#see({ type: use.version > 0 ? 'left' : 'gone', lock: use.lock, owner: use.name });
  }

  /** Its outcome is unknown: it ends with its session. */
  #abandon(use: Use): void {
    this.#over(use);
    use.session.over = true;
  }

  #see(event: LockEvent): void {
    this.#note(this.#check.observe(event));
  }

  #note(findings: ReturnType<LockCheck['observe']>): void {
    for (const { property, detail } of findings) this.#fault('KL1', `${property}: ${detail}`);
  }

  #fault(rule: string, text: string): void {
    this.#sessions.faults.push(`${rule}: ${text}`);
  }

  #pause(maxMs: number): Promise<void> {
    return this.#sessions.sleep(1 + this.#random.int(maxMs));
  }
}

function lockId(name: string) {
  return { namespace: 'sim', name: Buffer.from(name) };
}

function ofOwner({ lock, session, token, attempt }: Use) {
  return { lock: lockId(lock), owner: { session: session.ref, token }, attempt };
}

function acquire(use: Use, as: AcquireAs | undefined, wait: boolean): LockCommand {
  const times = { waitUntilMs: 0, deadlineMs: 0 };
  const command = {
    ...ofOwner(use),
    ...times,
    type: 'acquire',
    wait,
    depthMax: DEPTH_MAX,
    data: Buffer.alloc(0),
  } as const;
  return as === undefined ? command : { ...command, as };
}

function asOf({ mode, permits }: Use): AcquireAs | undefined {
  if (mode === 'permits') return { type: 'permits', permits, capacity: CAPACITY };
  return mode === 'shared' ? { type: 'shared' } : undefined;
}

function refusalOf({ result, code }: Told<LockResult>): string | undefined {
  return result?.type === 'refused' ? result.code : code;
}

function textOf(told: Told<LockResult>): string {
  return refusalOf(told) ?? JSON.stringify(told.result);
}
