import type { HoldMode, LockCommand, Owner } from '../src/index.ts';
import { type Gist, name, shownName } from './gist.ts';

export interface Waiting {
  readonly owner: Owner;
  readonly mode: HoldMode;
  readonly permits: number;
  readonly attempt: number;
  readonly waitUntilMs: number;
  readonly data: string;
  readonly keepData: boolean;
  readonly delayMs: number;
}

export interface Holding {
  readonly owner: Owner;
  mode: HoldMode;
  readonly permits: number;
  readonly first: number;
  attempt: number;
  upgrade: number;
  version: number;
  depth: number;
  data: string;
  readonly keepData: boolean;
  readonly delayMs: number;
  delayed: boolean;
}

export interface Passing {
  readonly owner: Owner;
  readonly attempt: number;
  readonly waitUntilMs: number;
  readonly parties: number;
  /** 0: it waits. */
  passed: number;
}

/** A command of one type. */
export type CommandOf<T extends LockCommand['type']> = Extract<LockCommand, { readonly type: T }>;

export interface Now {
  readonly revision: number;
  readonly timeMs: number;
  readonly alive: (owner: Owner) => boolean;
}

/** What there is of a lock: who holds it, waits, or stands at its barrier; and the smallest changes of that. */
export class NaiveState {
  holders: Holding[] = [];
  queue: Waiting[] = [];
  upgrader: Pick<Waiting, 'owner' | 'attempt' | 'waitUntilMs'> | undefined;
  capacity = 0;
  kept = '';
  forced = '';
  /** Grants up to which version are asked for, and until when. */
  asked: { readonly version: number; readonly untilMs: number } | undefined;
  barrierWaiters: Passing[] = [];
  capacityIsSet = false;
  /** What owners have canceled or released: no acquire of theirs up to that attempt is granted, until its deadline. */
  readonly marks = new Map<string, { attempt: number; deadlineMs: number }>();
  /** Of the command that is applied, as are the notices. */
  now: Now = { revision: 0, timeMs: 0, alive: () => false };
  notices: Gist[] = [];

  get permits(): number {
    return this.holders.reduce((sum, { permits }) => sum + permits, 0);
  }

  heldBy(owner: Owner): Holding | undefined {
    return this.holders.find((h) => !h.delayed && name(h.owner) === name(owner));
  }

  granted({ version, depth }: Pick<Holding, 'version' | 'depth'>): Gist {
    return `granted ${version} ${depth}${this.kept === '' ? '' : ` left ${this.kept}`}`;
  }

  busy(): Gist {
    return `busy ${this.holders[0] === undefined ? 'nobody' : shownName(this.holders[0].owner)}`;
  }

  grant({ owner, mode, permits, attempt, keepData, delayMs, ...waiting }: Waiting): void {
    const { revision: version } = this.now;
    const data = keepData && waiting.data === '' ? this.kept : waiting.data;
    const numbers = { first: attempt, attempt, upgrade: 0 };
    this.holders.push({ owner, mode, permits, ...numbers, version, depth: 1, data, keepData, delayMs, delayed: false });
  }

  vacate(held: Holding): void {
    this.stopUpgrading(held.owner, 0);
    if ((this.barrierWaiter(held.owner)?.parties ?? 0) > 0) {
      this.dropBarrierWaiter(held.owner);
      this.notices.push(`${name(held.owner)} LOCK_CANCELED`);
    }
    this.remove(held);
  }

  remove(held: Holding): void {
    this.holders = this.holders.filter((h) => h !== held);
    if (held.keepData) this.kept = held.data;
  }

  leaveQueue(owner: Owner): boolean {
    const before = this.queue.length;
    this.queue = this.queue.filter((w) => name(w.owner) !== name(owner));
    return this.queue.length < before;
  }

  /** Nobody is looked at where there is no room for anybody. */
  full(): boolean {
    const alone = this.holders.some(({ mode }) => mode === 'exclusive');
    return alone || (this.capacity > 0 && this.permits >= this.capacity);
  }

  refusal({ owner, waitUntilMs, permits }: Pick<Waiting, 'owner' | 'waitUntilMs' | 'permits'>): Gist | undefined {
    if (!this.now.alive(owner)) return 'SESSION_EXPIRED';
    if (waitUntilMs > 0 && waitUntilMs < this.now.timeMs) return 'LOCK_TIMEOUT';
    return permits > this.capacity ? 'LOCK_PERMITS_EXCEEDED' : undefined;
  }

  fits({ mode, permits }: Pick<Waiting, 'mode' | 'permits'>): boolean {
    if (mode === 'exclusive') return this.holders.length === 0;
    if (this.holders.some((h) => h.mode === 'exclusive')) return false;
    return mode === 'shared' || this.permits + permits <= this.capacity;
  }

  /** Who is asked to let go is asked on. */
  newVersion(held: Holding): void {
    const { revision } = this.now;
    if (this.asked !== undefined && held.version <= this.asked.version)
      this.asked = { ...this.asked, version: revision };
    held.version = revision;
  }

  toExclusive(held: Holding, attempt: number): void {
    held.mode = 'exclusive';
    this.newVersion(held);
    held.attempt = Math.max(attempt, held.attempt);
    held.upgrade = attempt;
  }

  stopUpgrading(owner: Owner, attempt: number): void {
    const waiting = this.upgrader;
    if (waiting === undefined || name(waiting.owner) !== name(owner)) return;
    if (attempt > 0 && waiting.attempt > attempt) return;
    this.upgrader = undefined;
    this.notices.push(`${name(owner)} LOCK_CANCELED`);
  }

  barrierWaiter(owner: Owner): Passing | undefined {
    return this.barrierWaiters.find((p) => name(p.owner) === name(owner));
  }

  dropBarrierWaiter(owner: Owner): void {
    this.barrierWaiters = this.barrierWaiters.filter((p) => name(p.owner) !== name(owner));
  }

  putBarrierWaiter(waiter: Passing): void {
    this.dropBarrierWaiter(waiter.owner);
    this.barrierWaiters.push(waiter);
  }

  mark(owner: Owner): { attempt: number; deadlineMs: number } | undefined {
    const mark = this.marks.get(name(owner));
    return mark !== undefined && mark.deadlineMs >= this.now.timeMs ? mark : undefined;
  }

  leaveMark(command: { owner: Owner; deadlineMs: number }, attempt: number): void {
    const { owner, deadlineMs } = command;
    if (deadlineMs === 0 || deadlineMs < this.now.timeMs || !this.now.alive(owner)) return;
    const before = this.mark(owner);
    this.marks.set(name(owner), {
      attempt: Math.max(attempt, before?.attempt ?? 0),
      deadlineMs: Math.max(deadlineMs, before?.deadlineMs ?? 0),
    });
  }
}
