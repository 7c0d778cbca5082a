import type { HoldMode, LockCommand, LockNotice, LockResult, Owner } from '../src/index.ts';

interface Waiting {
  readonly owner: Owner;
  readonly mode: HoldMode;
  readonly permits: number;
  readonly attempt: number;
  readonly waitUntilMs: number;
  readonly data: string;
  readonly keepData: boolean;
  readonly delayMs: number;
}

interface Holding {
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

interface Passing {
  readonly owner: Owner;
  readonly attempt: number;
  readonly waitUntilMs: number;
  readonly parties: number;
  /** 0: it waits. */
  passed: number;
}

type CommandOf<T extends LockCommand['type']> = Extract<LockCommand, { readonly type: T }>;

/** What an outcome says apart from texts and times for display. */
export type Gist = string;

export interface Now {
  readonly revision: number;
  readonly timeMs: number;
  readonly alive: (owner: Owner) => boolean;
}

/** One lock with arrays for all who hold it and wait, and nothing done to be fast: the rules once more, for comparison. */
export class NaiveLock {
  holders: Holding[] = [];
  queue: Waiting[] = [];
  upgrader: Pick<Waiting, 'owner' | 'attempt' | 'waitUntilMs'> | undefined;
  capacity = 0;
  kept = '';
  forced = '';
  /** Grants up to which version are asked for, and until when. */
  asked: { readonly version: number; readonly untilMs: number } | undefined;
  passers: Passing[] = [];
  #capacityIsSet = false;
  readonly #marks = new Map<string, { attempt: number; deadlineMs: number }>();
  #now: Now = { revision: 0, timeMs: 0, alive: () => false };
  #notices: Gist[] = [];

  get permits(): number {
    return this.holders.reduce((sum, { permits }) => sum + permits, 0);
  }

  apply(now: Now, command: LockCommand): { result: Gist; notices: Gist[] } {
    this.#begin(now);
    const result = this.#apply(command);
    this.#end();
    return { result, notices: this.#notices };
  }

  sessionEnded(now: Now, lease: bigint): Gist[] {
    this.#begin(now);
    const mine = ({ owner }: { readonly owner: Owner }) => owner.session.lease === lease;
    const passing = this.passers.filter((p) => mine(p) && p.passed === 0);
    this.#notices.push(...passing.map((p) => `${name(p.owner)} SESSION_EXPIRED`).sort());
    this.passers = this.passers.filter((p) => !mine(p));
    if (this.upgrader !== undefined && mine(this.upgrader)) {
      this.#notices.push(`${name(this.upgrader.owner)} SESSION_EXPIRED`);
      this.upgrader = undefined;
    }
    const gone = this.queue.filter(mine).map((w) => `${name(w.owner)} SESSION_EXPIRED`);
    this.#notices.push(...gone.sort());
    this.queue = this.queue.filter((w) => !mine(w));
    const ended = this.holders.filter(mine).sort((a, b) => (name(a.owner) < name(b.owner) ? -1 : 1));
    for (const held of ended) {
      if (held.delayMs > 0) held.delayed = true;
      else this.#vacate(held);
    }
    for (const key of [...this.#marks.keys()]) if (key.startsWith(`${lease}/`)) this.#marks.delete(key);
    this.#handOver();
    this.#end();
    return this.#notices;
  }

  #begin(now: Now): void {
    this.#now = now;
    this.#notices = [];
  }

  #end(): void {
    if (this.holders.length === 0 && !this.#capacityIsSet) this.capacity = 0;
    const { asked } = this;
    const isAsked = asked && this.holders.some(({ delayed, version }) => !delayed && version <= asked.version);
    if (!isAsked || this.#now.timeMs > asked.untilMs) this.asked = undefined;
    this.holders.sort((a, b) => a.version - b.version || (name(a.owner) < name(b.owner) ? -1 : 1));
  }

  #apply(command: LockCommand): Gist {
    switch (command.type) {
      case 'acquire':
        return this.#acquire(command);
      case 'release':
        return this.#release(command);
      case 'cancel':
        return this.#cancel(command);
      case 'downgrade':
        return this.#downgrade(command);
      case 'forceRelease':
        return this.#forceRelease(command);
      case 'setCapacity':
        if (this.capacity === 0 && this.holders.length > 0) return 'LOCK_KIND_MISMATCH';
        this.#capacityIsSet = command.capacity > 0;
        if (command.capacity > 0) this.capacity = command.capacity;
        else if (this.holders.length === 0) this.capacity = 0;
        this.#handOver();
        return `capacity ${this.permits} ${this.capacity}`;
      case 'revoke': {
        const [first] = this.holders;
        if (this.holders.every(({ delayed }) => delayed) || first === undefined) return 'LOCK_NOT_HELD';
        this.asked = { version: this.#now.revision, untilMs: this.#now.timeMs + command.forMs };
        this.#notices.push(`${name(first.owner)} revoking ${this.#now.revision}`);
        return `revoking ${this.#now.revision}`;
      }
      case 'setData':
        return this.#setData(command);
      case 'endDelay': {
        const { owner, version } = command;
        const same = (h: Holding) => h.delayed && h.version === version && name(h.owner) === name(owner);
        const held = this.holders.find(same);
        if (held === undefined) return 'LOCK_NOT_HELD';
        this.#vacate(held);
        this.#handOver();
        return `released 0 ${version}`;
      }
      case 'forget': {
        const any = this.kept !== '' || this.forced !== '';
        this.kept = '';
        this.forced = '';
        return `forgotten ${any}`;
      }
    }
  }

  #setData({ owner, version, data }: CommandOf<'setData'>): Gist {
    if (!this.#now.alive(owner)) return 'SESSION_EXPIRED';
    const held = this.#heldBy(owner);
    if (held?.version !== version) return 'LOCK_NOT_HELD';
    held.data = text(data);
    return this.#granted(held);
  }

  #granted({ version, depth }: Pick<Holding, 'version' | 'depth'>): Gist {
    return `granted ${version} ${depth}${this.kept === '' ? '' : ` left ${this.kept}`}`;
  }

  // ------------------------------------------------------------------------------------------------ acquire

  #acquire(command: CommandOf<'acquire'>): Gist {
    const { owner, attempt = 0, waitUntilMs, as } = command;
    if (!this.#now.alive(owner)) return 'SESSION_EXPIRED';
    const mark = this.#mark(owner);
    if (mark !== undefined) {
      const numbered = attempt > 0 && mark.attempt > 0;
      if (numbered ? attempt <= mark.attempt : command.deadlineMs <= mark.deadlineMs) return 'LOCK_CANCELED';
    }
    const isLock = this.capacity === 0 && this.holders.length > 0;
    if (as?.type === 'permits' ? isLock : this.capacity > 0) return 'LOCK_KIND_MISMATCH';
    if (as?.type !== 'pass' && as?.type !== 'enter') {
      if (this.#passer(owner)?.passed === 0) return 'LOCK_KIND_MISMATCH';
      this.#dropPasser(owner);
    }
    const held = this.#heldBy(owner);
    if (as?.type === 'upgrade') return this.#upgrade(command, held);
    if (as?.type === 'pass') return this.#pass(command, held);
    if (as?.type === 'enter') return this.#enterBarrier(command, as.parties, held);
    if (held !== undefined) return this.#reenter(command, held);
    const late = command.wait && waitUntilMs > 0 && waitUntilMs < this.#now.timeMs;
    if (late) {
      if (this.#leaveQueue(owner)) this.#handOver();
      return 'LOCK_TIMEOUT';
    }
    return this.#enter(command);
  }

  // ------------------------------------------------------------------------------------------------ barriers

  #pass(command: CommandOf<'acquire'>, held: Holding | undefined): Gist {
    const { owner, attempt = 0, wait, waitUntilMs } = command;
    const before = this.#passer(owner);
    if (before !== undefined && before.passed > 0 && attempt <= before.attempt) return `granted ${before.passed} 0`;
    if (held !== undefined && attempt < held.first) return 'LOCK_CANCELED';
    if (held !== undefined) {
      this.#vacate(held);
      if (attempt > 1) this.#leaveMark(command, attempt - 1);
      this.#handOver();
    }
    if (wait && waitUntilMs > 0 && waitUntilMs < this.#now.timeMs) {
      this.#dropPasser(owner);
      return 'LOCK_TIMEOUT';
    }
    if (this.holders.length > 0 && !wait) return this.#busy();
    const passed = this.holders.length === 0 ? this.#now.revision : 0;
    this.#putPasser({ owner, attempt, waitUntilMs, parties: 0, passed });
    return passed > 0 ? `granted ${passed} 0` : 'queued';
  }

  #enterBarrier(command: CommandOf<'acquire'>, parties: number, held: Holding | undefined): Gist {
    const { owner, attempt = 0, wait } = command;
    const waitUntilMs = wait ? command.waitUntilMs : 0;
    const before = this.#passer(owner);
    if (held !== undefined && (before?.parties ?? 0) === 0) {
      return attempt <= held.attempt ? this.#granted(held) : 'LOCK_KIND_MISMATCH';
    }
    if (before !== undefined && attempt < before.attempt) return 'LOCK_CANCELED';
    const entered = this.holders.filter(({ mode }) => mode === 'shared').length + (held === undefined ? 1 : 0);
    if (wait ? waitUntilMs > 0 && waitUntilMs < this.#now.timeMs : entered < parties) {
      if (held !== undefined) this.#vacate(held);
      else this.#dropPasser(owner);
      this.#handOver();
      return 'LOCK_TIMEOUT';
    }
    if (held === undefined) {
      const alone = this.holders.some(({ mode }) => mode === 'exclusive');
      if (this.queue.length > 0 || this.upgrader !== undefined || alone) return 'LOCK_KIND_MISMATCH';
      const wanted = { data: text(command.data), keepData: false, delayMs: 0, permits: 0 };
      this.#grant({ owner, mode: 'shared', attempt, waitUntilMs, ...wanted });
    } else held.attempt = Math.max(attempt, held.attempt);
    this.#putPasser({ owner, attempt, waitUntilMs, parties, passed: 0 });
    this.#letThrough();
    const inside = this.#heldBy(owner);
    return this.#passer(owner) === undefined && inside !== undefined ? this.#granted(inside) : 'queued';
  }

  #letThrough(): void {
    const sharers = () => this.holders.filter(({ mode }) => mode !== 'exclusive').length;
    const waiting = () => this.passers.filter(({ passed }) => passed === 0).sort(byOwner);
    const may = (p: Passing) => (p.parties === 0 ? this.holders.length === 0 : sharers() >= p.parties);
    // Nobody is looked at unless somebody may pass, or the lock is free.
    if (!waiting().some(may)) return;
    for (const passer of waiting()) {
      const alive = this.#now.alive(passer.owner);
      const late = passer.waitUntilMs > 0 && passer.waitUntilMs < this.#now.timeMs;
      if (alive && !late) continue;
      this.#dropPasser(passer.owner);
      const held = passer.parties > 0 ? this.#heldBy(passer.owner) : undefined;
      if (held !== undefined) this.#remove(held);
      this.#notices.push(`${name(passer.owner)} ${alive ? 'LOCK_TIMEOUT' : 'SESSION_EXPIRED'}`);
    }
    for (const passer of waiting().filter(may)) {
      if (passer.parties === 0) {
        passer.passed = this.#now.revision;
        this.#notices.push(`${name(passer.owner)} granted ${passer.passed} 0`);
      } else {
        this.#dropPasser(passer.owner);
        const held = this.#heldBy(passer.owner);
        if (held !== undefined) this.#notices.push(`${name(passer.owner)} ${this.#granted(held)}`);
      }
    }
  }

  #passer(owner: Owner): Passing | undefined {
    return this.passers.find((p) => name(p.owner) === name(owner));
  }

  #dropPasser(owner: Owner): void {
    this.passers = this.passers.filter((p) => name(p.owner) !== name(owner));
  }

  #putPasser(passer: Passing): void {
    this.#dropPasser(passer.owner);
    this.passers.push(passer);
  }

  #enter(command: CommandOf<'acquire'>): Gist {
    const { owner, attempt = 0, waitUntilMs, as, wait, keepData = false, delayMs = 0 } = command;
    const data = text(command.data);
    const mode = as?.type === 'permits' ? 'permits' : as?.type === 'shared' ? 'shared' : 'exclusive';
    const permits = as?.type === 'permits' ? as.permits : 0;
    if (as?.type === 'permits') {
      this.capacity ||= as.capacity;
      if (permits > this.capacity) {
        if (this.#leaveQueue(owner)) this.#handOver();
        return 'LOCK_PERMITS_EXCEEDED';
      }
    }
    const wanted = { owner, mode, permits, attempt, waitUntilMs, data, keepData, delayMs } as const;
    const at = this.queue.findIndex((w) => name(w.owner) === name(owner));
    const before = this.queue[at];
    if (before !== undefined) {
      const same = before.mode === mode && before.permits === permits;
      if (attempt > before.attempt && !same) this.queue.splice(at, 1);
      else if (wait && attempt >= before.attempt) {
        const said = attempt > before.attempt ? { data, keepData, delayMs } : {};
        this.queue[at] = { ...before, ...said, attempt, waitUntilMs };
      }
    }
    if (before !== undefined || this.queue.length > 0 || this.upgrader !== undefined) this.#handOver();
    const granted = this.#heldBy(owner);
    if (granted !== undefined) return this.#granted(granted);
    const stays = this.queue.some((w) => name(w.owner) === name(owner));
    if (before !== undefined && this.queue.length > 0 && stays) return wait ? 'queued' : this.#busy();
    if (before !== undefined && !stays && this.#refusedNow(owner)) return 'LOCK_TIMEOUT';
    if (this.queue.length === 0 && this.upgrader === undefined && this.#fits(wanted)) {
      this.#grant(wanted);
      this.#letThrough();
      return this.#granted({ version: this.#now.revision, depth: 1 });
    }
    if (!wait) return this.#busy();
    this.queue.push(wanted);
    return 'queued';
  }

  #refusedNow(owner: Owner): boolean {
    return this.#notices.some((notice) => notice.startsWith(`${name(owner)} `));
  }

  #reenter(command: CommandOf<'acquire'>, held: Holding): Gist {
    const { attempt = 0 } = command;
    if (attempt === 0 || attempt > held.attempt) {
      if (held.mode === 'shared' && command.as === undefined) return 'LOCK_KIND_MISMATCH';
      if (held.depth >= command.depthMax) return 'LOCK_DEPTH_EXCEEDED';
      held.depth += 1;
      held.attempt = Math.max(attempt, held.attempt);
    }
    return this.#granted(held);
  }

  #busy(): Gist {
    return `busy ${this.holders[0] === undefined ? 'nobody' : name(this.holders[0].owner)}`;
  }

  // ------------------------------------------------------------------------------------------------ upgrade

  #upgrade({ owner, attempt = 0, wait, waitUntilMs }: CommandOf<'acquire'>, held: Holding | undefined): Gist {
    if (held === undefined) return 'LOCK_NOT_HELD';
    if (held.mode === 'exclusive') return this.#granted(held);
    if (attempt <= held.attempt) return 'LOCK_CANCELED';
    const isMine = () => this.upgrader !== undefined && name(this.upgrader.owner) === name(owner);
    const mine = isMine();
    if (wait && waitUntilMs > 0 && waitUntilMs < this.#now.timeMs) {
      if (mine) {
        this.upgrader = undefined;
        this.#handOver();
      }
      return 'LOCK_TIMEOUT';
    }
    this.#handOver();
    if (!this.holders.includes(held)) return 'LOCK_NOT_HELD';
    if (this.upgrader !== undefined && !mine) return 'LOCK_UPGRADE_CONFLICT';
    if (this.holders.length === 1) {
      this.#toExclusive(held, attempt);
      return this.#granted(held);
    }
    if (!wait) return `busy ${name(this.holders.find((h) => h !== held)?.owner ?? owner)}`;
    this.upgrader = { owner, attempt, waitUntilMs };
    return 'queued';
  }

  #downgrade({ owner, attempt = 0 }: CommandOf<'downgrade'>): Gist {
    if (!this.#now.alive(owner)) return 'SESSION_EXPIRED';
    const held = this.#heldBy(owner);
    if (held === undefined || (attempt > 0 && attempt < held.first)) return 'LOCK_NOT_HELD';
    if (held.mode === 'permits' || this.#passer(owner)?.passed === 0) return 'LOCK_KIND_MISMATCH';
    if (attempt > 0 && attempt < held.upgrade) return this.#granted(held);
    this.#endUpgrade(held, attempt);
    this.#handOver();
    return this.#granted(held);
  }

  /** Who is asked to let go is asked on. */
  #newVersion(held: Holding): void {
    const { revision } = this.#now;
    if (this.asked !== undefined && held.version <= this.asked.version)
      this.asked = { ...this.asked, version: revision };
    held.version = revision;
  }

  #endUpgrade(held: Holding, attempt: number): void {
    if (held.mode === 'exclusive') {
      held.mode = 'shared';
      this.#newVersion(held);
    } else this.#stopUpgrading(held.owner, attempt);
    held.attempt = Math.max(held.attempt, attempt, held.upgrade);
    held.upgrade = Math.max(held.upgrade, attempt);
  }

  #stopUpgrading(owner: Owner, attempt: number): void {
    const waiting = this.upgrader;
    if (waiting === undefined || name(waiting.owner) !== name(owner)) return;
    if (attempt > 0 && waiting.attempt > attempt) return;
    this.upgrader = undefined;
    this.#notices.push(`${name(owner)} LOCK_CANCELED`);
  }

  #toExclusive(held: Holding, attempt: number): void {
    held.mode = 'exclusive';
    this.#newVersion(held);
    held.attempt = Math.max(attempt, held.attempt);
    held.upgrade = attempt;
  }

  // ------------------------------------------------------------------------------------------------ release

  #release(command: CommandOf<'release'>): Gist {
    const { owner, attempt = 0 } = command;
    const held = this.#heldBy(owner);
    if (held !== undefined && !(attempt > 0 && attempt < held.first)) {
      if (!command.all && held.depth > 1) {
        held.depth -= 1;
        return `released ${held.depth} ${held.version}`;
      }
      this.#vacate(held);
      this.#leaveMark(command, Math.max(attempt, held.attempt));
      this.#handOver();
      return `released 0 ${held.version}`;
    }
    if (!this.#now.alive(owner)) return 'SESSION_EXPIRED';
    const passer = this.#passer(owner);
    if (passer?.passed === 0 || this.queue.some((w) => name(w.owner) === name(owner))) return 'LOCK_NOT_HELD';
    this.#leaveMark(command, attempt);
    if (passer !== undefined) {
      this.#dropPasser(owner);
      return `released 0 ${passer.passed}`;
    }
    return this.holders.length === 0 || held !== undefined ? 'LOCK_NOT_HELD' : 'LOCK_WRONG_OWNER';
  }

  #cancel(command: CommandOf<'cancel'>): Gist {
    const { owner, attempt = 0 } = command;
    const mark = this.#mark(owner);
    if (mark !== undefined && attempt > 0 && attempt <= mark.attempt) return 'canceled false';
    const waiting = this.queue.find((w) => name(w.owner) === name(owner));
    if (waiting !== undefined && (attempt === 0 || waiting.attempt <= attempt)) {
      this.#leaveQueue(owner);
      this.#notices.push(`${name(owner)} LOCK_CANCELED`);
    }
    const held = this.#heldBy(owner);
    const undone = this.#cancelPassing(owner, attempt, held) || (held !== undefined && this.#undo(held, attempt));
    const ended = held !== undefined && !this.holders.includes(held);
    this.#leaveMark(command, ended ? Math.max(attempt, held.attempt) : attempt);
    this.#handOver();
    return `canceled ${undone}`;
  }

  #cancelPassing(owner: Owner, attempt: number, held: Holding | undefined): boolean {
    const passer = this.#passer(owner);
    if (passer === undefined || (attempt > 0 && attempt < passer.attempt)) return false;
    if (held !== undefined && passer.parties > 0) {
      this.#vacate(held);
      return true;
    }
    this.#dropPasser(owner);
    if (passer.passed === 0) this.#notices.push(`${name(owner)} LOCK_CANCELED`);
    return false;
  }

  #undo(held: Holding, attempt: number): boolean {
    const upgrader = this.upgrader !== undefined && name(this.upgrader.owner) === name(held.owner) && this.upgrader;
    const waits = upgrader && (attempt === 0 || upgrader.attempt <= attempt);
    if (waits || (attempt > 0 && attempt === held.upgrade)) {
      const wasAlone = held.mode === 'exclusive';
      this.#endUpgrade(held, waits ? upgrader.attempt : attempt);
      return wasAlone;
    }
    if (attempt > held.attempt || (attempt > 0 && attempt < held.first)) return false;
    if (held.depth > 1) held.depth -= 1;
    else this.#vacate(held);
    return true;
  }

  #forceRelease({ by = '', reason = '' }: CommandOf<'forceRelease'>): Gist {
    if (this.upgrader !== undefined) this.#notices.push(`${name(this.upgrader.owner)} LOCK_NOT_HELD`);
    this.upgrader = undefined;
    const entering = this.passers.filter(({ parties }) => parties > 0).sort(byOwner);
    for (const { owner } of entering) {
      this.#dropPasser(owner);
      this.#notices.push(`${name(owner)} LOCK_NOT_HELD`);
    }
    const { holders } = this;
    this.#notices.push(...holders.map(({ owner, version }) => `${name(owner)} released 0 ${version}`));
    for (const held of holders) this.#vacate(held);
    const newest = holders.at(-1);
    if (newest !== undefined && by + reason !== '') this.forced = `${by} ${reason} ${newest.version}`;
    this.#handOver();
    return holders.length === 0 ? 'LOCK_NOT_HELD' : `released 0 ${holders.at(-1)?.version}`;
  }

  #vacate(held: Holding): void {
    this.#stopUpgrading(held.owner, 0);
    if ((this.#passer(held.owner)?.parties ?? 0) > 0) {
      this.#dropPasser(held.owner);
      this.#notices.push(`${name(held.owner)} LOCK_CANCELED`);
    }
    this.#remove(held);
  }

  #remove(held: Holding): void {
    this.holders = this.holders.filter((h) => h !== held);
    if (held.keepData) this.kept = held.data;
  }

  // ------------------------------------------------------------------------------------------------ hand-over

  #handOver(): void {
    this.#letThrough();
    if (this.#full()) return;
    const { upgrader } = this;
    if (upgrader !== undefined) {
      const refusal = this.#refusal({ ...upgrader, permits: 0 });
      if (refusal === undefined && this.holders.length > 1) return;
      this.upgrader = undefined;
      const held = this.#heldBy(upgrader.owner);
      if (refusal !== undefined) this.#notices.push(`${name(upgrader.owner)} ${refusal}`);
      else if (held !== undefined) {
        this.#toExclusive(held, upgrader.attempt);
        this.#notices.push(`${name(upgrader.owner)} ${this.#granted(held)}`);
        return;
      }
    }
    for (let next = this.queue[0]; next !== undefined && !this.#full(); next = this.queue[0]) {
      const refusal = this.#refusal(next);
      if (refusal === undefined && !this.#fits(next)) break;
      this.queue.shift();
      if (refusal === undefined) this.#grant(next);
      const told = refusal ?? this.#granted({ version: this.#now.revision, depth: 1 });
      this.#notices.push(`${name(next.owner)} ${told}`);
    }
    this.#letThrough();
  }

  /** Nobody is looked at where there is no room for anybody. */
  #full(): boolean {
    const alone = this.holders.some(({ mode }) => mode === 'exclusive');
    return alone || (this.capacity > 0 && this.permits >= this.capacity);
  }

  #refusal({ owner, waitUntilMs, permits }: Pick<Waiting, 'owner' | 'waitUntilMs' | 'permits'>): Gist | undefined {
    if (!this.#now.alive(owner)) return 'SESSION_EXPIRED';
    if (waitUntilMs > 0 && waitUntilMs < this.#now.timeMs) return 'LOCK_TIMEOUT';
    return permits > this.capacity ? 'LOCK_PERMITS_EXCEEDED' : undefined;
  }

  #fits({ mode, permits }: Pick<Waiting, 'mode' | 'permits'>): boolean {
    if (mode === 'exclusive') return this.holders.length === 0;
    if (this.holders.some((h) => h.mode === 'exclusive')) return false;
    return mode === 'shared' || this.permits + permits <= this.capacity;
  }

  #grant({ owner, mode, permits, attempt, keepData, delayMs, ...waiting }: Waiting): void {
    const { revision: version } = this.#now;
    const data = keepData && waiting.data === '' ? this.kept : waiting.data;
    const numbers = { first: attempt, attempt, upgrade: 0 };
    this.holders.push({ owner, mode, permits, ...numbers, version, depth: 1, data, keepData, delayMs, delayed: false });
  }

  #heldBy(owner: Owner): Holding | undefined {
    return this.holders.find((h) => !h.delayed && name(h.owner) === name(owner));
  }

  #leaveQueue(owner: Owner): boolean {
    const before = this.queue.length;
    this.queue = this.queue.filter((w) => name(w.owner) !== name(owner));
    return this.queue.length < before;
  }

  #mark(owner: Owner): { attempt: number; deadlineMs: number } | undefined {
    const mark = this.#marks.get(name(owner));
    return mark !== undefined && mark.deadlineMs >= this.#now.timeMs ? mark : undefined;
  }

  #leaveMark(command: { owner: Owner; deadlineMs: number }, attempt: number): void {
    const { owner, deadlineMs } = command;
    if (deadlineMs === 0 || deadlineMs < this.#now.timeMs || !this.#now.alive(owner)) return;
    const before = this.#mark(owner);
    this.#marks.set(name(owner), {
      attempt: Math.max(attempt, before?.attempt ?? 0),
      deadlineMs: Math.max(deadlineMs, before?.deadlineMs ?? 0),
    });
  }
}

export function name(owner: Owner): string {
  return `${owner.session.lease}/${owner.token}`;
}

function byOwner(a: { readonly owner: Owner }, b: { readonly owner: Owner }): number {
  return name(a.owner) < name(b.owner) ? -1 : 1;
}

function text(data: Uint8Array): string {
  return Buffer.from(data).toString();
}

export function gist(result: LockResult): Gist {
  switch (result.type) {
    case 'granted': {
      const { version, depth, keptData } = result;
      return `granted ${version} ${depth}${keptData === undefined ? '' : ` left ${text(keptData)}`}`;
    }
    case 'forgotten':
      return `forgotten ${result.any}`;
    case 'queued':
      return 'queued';
    case 'busy':
      return `busy ${name(result.holder.owner)}`;
    case 'released':
      return `released ${result.depth} ${result.version}`;
    case 'revoking':
      return `revoking ${result.version}`;
    case 'capacity':
      return `capacity ${result.permits} ${result.capacity}`;
    case 'canceled':
      return `canceled ${result.released}`;
    case 'refused':
      return result.code;
  }
}

export function noticeGist(notice: LockNotice): Gist {
  return `${name(notice.owner)} ${gist(notice.result)}`;
}
