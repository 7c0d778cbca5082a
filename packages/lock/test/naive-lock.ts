import type { LockCommand, Owner } from '../src/index.ts';
import { byOwner, type Gist, name, text } from './gist.ts';
import { cancelPassing, enterBarrier, pass } from './naive-barrier.ts';
import { handOver, releaseBarrierWaiters } from './naive-hand-over.ts';
import { type CommandOf, type Holding, NaiveState, type Now } from './naive-state.ts';
import { downgrade, endUpgrade, upgrade } from './naive-upgrade.ts';

/**
 * One lock with arrays for all who hold it and wait, and nothing done to be fast: the rules once more, for comparison.
 */
export class NaiveLock extends NaiveState {
  apply(now: Now, command: LockCommand): { result: Gist; notices: Gist[] } {
    this.#begin(now);
    const result = this.#apply(command);
    this.#end();
    return { result, notices: this.notices };
  }

  sessionEnded(now: Now, lease: bigint): Gist[] {
    this.#begin(now);
    const mine = ({ owner }: { readonly owner: Owner }) => owner.session.lease === lease;
    const passing = this.barrierWaiters.filter((p) => mine(p) && p.passed === 0);
    this.notices.push(...passing.map((p) => `${name(p.owner)} SESSION_EXPIRED`).sort());
    this.barrierWaiters = this.barrierWaiters.filter((p) => !mine(p));
    if (this.upgrader !== undefined && mine(this.upgrader)) {
      this.notices.push(`${name(this.upgrader.owner)} SESSION_EXPIRED`);
      this.upgrader = undefined;
    }
    const gone = this.queue.filter(mine).map((w) => `${name(w.owner)} SESSION_EXPIRED`);
    this.notices.push(...gone.sort());
    this.queue = this.queue.filter((w) => !mine(w));
    const ended = this.holders.filter(mine).sort(byOwner);
    for (const held of ended) {
      if (held.delayMs > 0) held.delayed = true;
      else this.vacate(held);
    }
    for (const key of [...this.marks.keys()]) if (key.startsWith(`${lease}/`)) this.marks.delete(key);
    handOver(this);
    this.#end();
    return this.notices;
  }

  #begin(now: Now): void {
    this.now = now;
    this.notices = [];
  }

  #end(): void {
    if (this.holders.length === 0 && !this.capacityIsSet) this.capacity = 0;
    const { asked } = this;
    const isAsked = asked && this.holders.some(({ delayed, version }) => !delayed && version <= asked.version);
    if (!isAsked || this.now.timeMs > asked.untilMs) this.asked = undefined;
    this.holders.sort((a, b) => a.version - b.version || byOwner(a, b));
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
        return downgrade(this, command);
      case 'forceRelease':
        return this.#forceRelease(command);
      case 'setCapacity':
        if (this.capacity === 0 && this.holders.length > 0) return 'LOCK_KIND_MISMATCH';
        this.capacityIsSet = command.capacity > 0;
        if (command.capacity > 0) this.capacity = command.capacity;
        else if (this.holders.length === 0) this.capacity = 0;
        for (const waiter of this.queue.filter(({ permits }) => permits > this.capacity)) {
          this.notices.push(`${name(waiter.owner)} ${this.refusal(waiter)}`);
          this.leaveQueue(waiter.owner);
        }
        handOver(this);
        return `capacity ${this.permits} ${this.capacity}`;
      case 'revoke': {
        const [first] = this.holders;
        if (this.holders.every(({ delayed }) => delayed) || first === undefined) return 'LOCK_NOT_HELD';
        this.asked = { version: this.now.revision, untilMs: this.now.timeMs + command.forMs };
        this.notices.push(`${name(first.owner)} revoking ${this.now.revision}`);
        return `revoking ${this.now.revision}`;
      }
      case 'setData':
        return this.#changed(command, (held) => {
          held.data = text(command.data);
        });
      case 'setDepth':
        return this.#changed(command, (held) => {
          held.depth = command.depth;
        });
      case 'endDelay': {
        const { owner, version } = command;
        const same = (h: Holding) => h.delayed && h.version === version && name(h.owner) === name(owner);
        const held = this.holders.find(same);
        if (held === undefined) return 'LOCK_NOT_HELD';
        this.vacate(held);
        handOver(this);
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

  #changed({ owner, version }: CommandOf<'setData' | 'setDepth'>, change: (held: Holding) => void): Gist {
    if (!this.now.alive(owner)) return 'SESSION_EXPIRED';
    const held = this.heldBy(owner);
    if (held?.version !== version) return 'LOCK_NOT_HELD';
    change(held);
    return this.granted(held);
  }

  #acquire(command: CommandOf<'acquire'>): Gist {
    const { owner, attempt = 0, waitUntilMs, as } = command;
    if (!this.now.alive(owner)) return 'SESSION_EXPIRED';
    const mark = this.mark(owner);
    if (mark !== undefined) {
      const numbered = attempt > 0 && mark.attempt > 0;
      if (numbered ? attempt <= mark.attempt : command.deadlineMs <= mark.deadlineMs) return 'LOCK_CANCELED';
    }
    const before = as?.type === 'pass' ? this.barrierWaiter(owner) : undefined;
    if (before !== undefined && before.passed > 0 && attempt <= before.attempt) return `granted ${before.passed} 0`;
    const isLock = this.capacity === 0 && this.holders.length > 0;
    if (as?.type === 'permits' ? isLock : this.capacity > 0) return 'LOCK_KIND_MISMATCH';
    if (as?.type !== 'pass' && as?.type !== 'enter') {
      if (this.barrierWaiter(owner)?.passed === 0) return 'LOCK_KIND_MISMATCH';
      this.dropBarrierWaiter(owner);
    }
    const held = this.heldBy(owner);
    if (as?.type === 'upgrade') return upgrade(this, command, held);
    if (as?.type === 'pass') return pass(this, command, held);
    if (as?.type === 'enter') return enterBarrier(this, command, as.parties);
    if (held !== undefined) return this.#reenter(command, held);
    const late = command.wait && waitUntilMs > 0 && waitUntilMs < this.now.timeMs;
    if (late) {
      if (this.leaveQueue(owner)) handOver(this);
      return 'LOCK_TIMEOUT';
    }
    return this.#enter(command);
  }

  #enter(command: CommandOf<'acquire'>): Gist {
    const { owner, attempt = 0, waitUntilMs, as, wait, keepData = false, delayMs = 0 } = command;
    const data = text(command.data);
    const mode = as?.type === 'permits' ? 'permits' : as?.type === 'shared' ? 'shared' : 'exclusive';
    const permits = as?.type === 'permits' ? as.permits : 0;
    if (as?.type === 'permits') {
      this.capacity ||= as.capacity;
      if (permits > this.capacity) {
        if (this.leaveQueue(owner)) handOver(this);
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
    if (before !== undefined || this.queue.length > 0 || this.upgrader !== undefined) handOver(this);
    const granted = this.heldBy(owner);
    if (granted !== undefined) return this.granted(granted);
    const stays = this.queue.some((w) => name(w.owner) === name(owner));
    if (before !== undefined && this.queue.length > 0 && stays) return wait ? 'queued' : this.busy();
    if (before !== undefined && !stays && this.#refusedNow(owner)) return 'LOCK_TIMEOUT';
    if (this.queue.length === 0 && this.upgrader === undefined && this.fits(wanted)) {
      this.grant(wanted);
      releaseBarrierWaiters(this);
      return this.granted({ version: this.now.revision, depth: 1 });
    }
    if (!wait) return this.busy();
    this.queue.push(wanted);
    return 'queued';
  }

  #reenter(command: CommandOf<'acquire'>, held: Holding): Gist {
    const { attempt = 0 } = command;
    if (attempt === 0 || attempt > held.attempt) {
      if (held.mode === 'shared' && command.as === undefined) return 'LOCK_KIND_MISMATCH';
      if (held.depth >= command.depthMax) return 'LOCK_DEPTH_EXCEEDED';
      held.depth += 1;
      held.attempt = Math.max(attempt, held.attempt);
    }
    return this.granted(held);
  }

  #refusedNow(owner: Owner): boolean {
    return this.notices.some((notice) => notice.startsWith(`${name(owner)} `));
  }

  #release(command: CommandOf<'release'>): Gist {
    const { owner, attempt = 0 } = command;
    const held = this.heldBy(owner);
    if (held !== undefined && !(attempt > 0 && attempt < held.first)) {
      if (!command.all && held.depth > 1) {
        held.depth -= 1;
        return `released ${held.depth} ${held.version}`;
      }
      this.vacate(held);
      this.leaveMark(command, Math.max(attempt, held.attempt));
      handOver(this);
      return `released 0 ${held.version}`;
    }
    if (!this.now.alive(owner)) return 'SESSION_EXPIRED';
    const waiter = this.barrierWaiter(owner);
    if (waiter?.passed === 0 || this.queue.some((w) => name(w.owner) === name(owner))) return 'LOCK_NOT_HELD';
    this.leaveMark(command, attempt);
    if (waiter !== undefined && attempt > 0 && attempt < waiter.attempt) return 'LOCK_NOT_HELD';
    if (waiter !== undefined) {
      this.dropBarrierWaiter(owner);
      return `released 0 ${waiter.passed}`;
    }
    return this.holders.length === 0 || held !== undefined ? 'LOCK_NOT_HELD' : 'LOCK_WRONG_OWNER';
  }

  #cancel(command: CommandOf<'cancel'>): Gist {
    const { owner, attempt = 0 } = command;
    const mark = this.mark(owner);
    if (mark !== undefined && attempt > 0 && attempt <= mark.attempt) return 'canceled false';
    const waiting = this.queue.find((w) => name(w.owner) === name(owner));
    if (waiting !== undefined && (attempt === 0 || waiting.attempt <= attempt)) {
      this.leaveQueue(owner);
      this.notices.push(`${name(owner)} LOCK_CANCELED`);
    }
    const held = this.heldBy(owner);
    const undone = cancelPassing(this, owner, attempt, held) || (held !== undefined && this.#undo(held, attempt));
    const ended = held !== undefined && !this.holders.includes(held);
    this.leaveMark(command, ended ? Math.max(attempt, held.attempt) : attempt);
    handOver(this);
    return `canceled ${undone}`;
  }

  #undo(held: Holding, attempt: number): boolean {
    const upgrader = this.upgrader !== undefined && name(this.upgrader.owner) === name(held.owner) && this.upgrader;
    const waits = upgrader && (attempt === 0 || upgrader.attempt <= attempt);
    if (waits || (attempt > 0 && attempt === held.upgrade)) {
      const wasAlone = held.mode === 'exclusive';
      endUpgrade(this, held, waits ? upgrader.attempt : attempt);
      return wasAlone;
    }
    if (attempt > held.attempt || (attempt > 0 && attempt < Math.max(held.first, held.upgrade))) return false;
    if (held.depth > 1) held.depth -= 1;
    else this.vacate(held);
    return true;
  }

  #forceRelease({ by = '', reason = '', upToVersion = 0 }: CommandOf<'forceRelease'>): Gist {
    const holders = this.holders.filter(({ version }) => upToVersion === 0 || version <= upToVersion);
    const taken = new Set(holders.map(({ owner }) => name(owner)));
    if (this.upgrader !== undefined && taken.has(name(this.upgrader.owner))) {
      this.notices.push(`${name(this.upgrader.owner)} LOCK_NOT_HELD`);
      this.upgrader = undefined;
    }
    const entering = this.barrierWaiters.filter(({ owner, parties }) => parties > 0 && taken.has(name(owner)));
    entering.sort(byOwner);
    for (const { owner } of entering) {
      this.dropBarrierWaiter(owner);
      this.notices.push(`${name(owner)} LOCK_NOT_HELD`);
    }
    this.notices.push(...holders.map(({ owner, version }) => `${name(owner)} released 0 ${version}`));
    for (const held of holders) this.vacate(held);
    const newest = holders.at(-1);
    if (newest !== undefined && by + reason !== '') this.forced = `${by} ${reason} ${newest.version}`;
    handOver(this);
    return holders.length === 0 ? 'LOCK_NOT_HELD' : `released 0 ${holders.at(-1)?.version}`;
  }
}
