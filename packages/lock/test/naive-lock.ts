import type { LockCommand, LockNotice, LockResult, Owner } from '../src/index.ts';

interface Waiting {
  readonly owner: Owner;
  readonly attempt: number;
  readonly waitUntilMs: number;
}

/** What an outcome says apart from texts and times for display. */
export type Gist = string;

export interface Now {
  readonly revision: number;
  readonly timeMs: number;
  readonly alive: (owner: Owner) => boolean;
}

/** One lock with an array for its queue and nothing done to be fast: the rules once more, for comparison. */
export class NaiveLock {
  holder: { owner: Owner; first: number; attempt: number; version: number; depth: number } | undefined;
  queue: Waiting[] = [];
  readonly #marks = new Map<string, { attempt: number; deadlineMs: number }>();

  apply(now: Now, command: LockCommand): { result: Gist; notices: Gist[] } {
    const notices: Gist[] = [];
    return { result: this.#apply(now, command, notices), notices };
  }

  sessionEnded(now: Now, lease: bigint): Gist[] {
    const notices: Gist[] = [];
    const mine = (owner: Owner) => owner.session.lease === lease;
    const gone = this.queue.filter((w) => mine(w.owner)).map((w) => `${name(w.owner)} SESSION_EXPIRED`);
    this.queue = this.queue.filter((w) => !mine(w.owner));
    for (const key of [...this.#marks.keys()]) if (key.startsWith(`${lease}/`)) this.#marks.delete(key);
    if (this.holder !== undefined && mine(this.holder.owner)) this.#passOn(now, notices);
    return [...gone.sort(), ...notices];
  }

  #apply(now: Now, command: LockCommand, notices: Gist[]): Gist {
    if (command.type === 'forceRelease') {
      if (this.holder === undefined) return 'LOCK_NOT_HELD';
      const { owner, version } = this.holder;
      notices.push(`${name(owner)} released 0 ${version}`);
      this.#passOn(now, notices);
      return `released 0 ${version}`;
    }
    const mine = this.holder !== undefined && name(this.holder.owner) === name(command.owner);
    if (command.type === 'acquire') return this.#acquire(now, command, mine);
    if (command.type === 'release') return this.#release(now, command, mine, notices);
    return this.#cancel(now, command, mine, notices);
  }

  #acquire(now: Now, command: Extract<LockCommand, { type: 'acquire' }>, mine: boolean): Gist {
    const { owner, attempt = 0, waitUntilMs } = command;
    if (!now.alive(owner)) return 'SESSION_EXPIRED';
    const mark = this.#mark(now, owner);
    if (mark !== undefined) {
      const numbered = attempt > 0 && mark.attempt > 0;
      if (numbered ? attempt <= mark.attempt : command.deadlineMs <= mark.deadlineMs) return 'LOCK_CANCELED';
    }
    const held = this.holder;
    if (held !== undefined && mine) {
      if (attempt === 0 || attempt > held.attempt) {
        if (held.depth >= command.depthMax) return 'LOCK_DEPTH_EXCEEDED';
        held.depth += 1;
        held.attempt = Math.max(attempt, held.attempt);
      }
      return `granted ${held.version} ${held.depth}`;
    }
    const at = this.queue.findIndex((w) => name(w.owner) === name(owner));
    if (command.wait && waitUntilMs > 0 && waitUntilMs < now.timeMs) {
      if (at >= 0) this.queue.splice(at, 1);
      return 'LOCK_TIMEOUT';
    }
    if (held === undefined) {
      this.holder = { owner, first: attempt, attempt, version: now.revision, depth: 1 };
      return `granted ${now.revision} 1`;
    }
    if (!command.wait) return `busy ${name(held.owner)}`;
    const before = this.queue[at];
    if (before === undefined) this.queue.push({ owner, attempt, waitUntilMs });
    else if (attempt >= before.attempt) this.queue[at] = { owner, attempt, waitUntilMs };
    return 'queued';
  }

  #release(now: Now, command: Extract<LockCommand, { type: 'release' }>, mine: boolean, notices: Gist[]): Gist {
    const { owner, attempt = 0 } = command;
    const held = this.holder;
    const late = held !== undefined && attempt > 0 && attempt < held.first;
    if (held !== undefined && mine && !late) {
      if (!command.all && held.depth > 1) {
        held.depth -= 1;
        return `released ${held.depth} ${held.version}`;
      }
      this.#leaveMark(now, command, Math.max(attempt, held.attempt));
      this.#passOn(now, notices);
      return `released 0 ${held.version}`;
    }
    if (!now.alive(owner)) return 'SESSION_EXPIRED';
    if (this.queue.some((w) => name(w.owner) === name(owner))) return 'LOCK_NOT_HELD';
    this.#leaveMark(now, command, attempt);
    return held === undefined || mine ? 'LOCK_NOT_HELD' : 'LOCK_WRONG_OWNER';
  }

  #cancel(now: Now, command: Extract<LockCommand, { type: 'cancel' }>, mine: boolean, notices: Gist[]): Gist {
    const { owner, attempt = 0 } = command;
    const mark = this.#mark(now, owner);
    if (mark !== undefined && attempt > 0 && attempt <= mark.attempt) return 'canceled false';
    const at = this.queue.findIndex((w) => name(w.owner) === name(owner));
    const waiting = this.queue[at];
    if (waiting !== undefined && (attempt === 0 || waiting.attempt <= attempt)) {
      this.queue.splice(at, 1);
      notices.push(`${name(owner)} LOCK_CANCELED`);
    }
    const held = this.holder;
    if (held === undefined || !mine || (attempt > 0 && (attempt > held.attempt || attempt < held.first))) {
      this.#leaveMark(now, command, attempt);
      return 'canceled false';
    }
    if (held.depth > 1) {
      held.depth -= 1;
      this.#leaveMark(now, command, attempt);
    } else {
      this.#leaveMark(now, command, Math.max(attempt, held.attempt));
      this.#passOn(now, notices);
    }
    return 'canceled true';
  }

  #passOn(now: Now, notices: Gist[]): void {
    this.holder = undefined;
    for (;;) {
      const next = this.queue.shift();
      if (next === undefined) return;
      const { owner, attempt, waitUntilMs } = next;
      if (!now.alive(owner)) notices.push(`${name(owner)} SESSION_EXPIRED`);
      else if (waitUntilMs > 0 && waitUntilMs < now.timeMs) notices.push(`${name(owner)} LOCK_TIMEOUT`);
      else {
        this.holder = { owner, first: attempt, attempt, version: now.revision, depth: 1 };
        notices.push(`${name(owner)} granted ${now.revision} 1`);
        return;
      }
    }
  }

  #mark(now: Now, owner: Owner): { attempt: number; deadlineMs: number } | undefined {
    const mark = this.#marks.get(name(owner));
    return mark !== undefined && mark.deadlineMs >= now.timeMs ? mark : undefined;
  }

  #leaveMark(now: Now, command: { owner: Owner; deadlineMs: number }, attempt: number): void {
    const { owner, deadlineMs } = command;
    if (deadlineMs === 0 || deadlineMs < now.timeMs || !now.alive(owner)) return;
    const before = this.#mark(now, owner);
    this.#marks.set(name(owner), {
      attempt: Math.max(attempt, before?.attempt ?? 0),
      deadlineMs: Math.max(deadlineMs, before?.deadlineMs ?? 0),
    });
  }
}

export function name(owner: Owner): string {
  return `${owner.session.lease}/${owner.token}`;
}

export function gist(result: LockResult): Gist {
  switch (result.type) {
    case 'granted':
      return `granted ${result.version} ${result.depth}`;
    case 'queued':
      return 'queued';
    case 'busy':
      return `busy ${name(result.holder.owner)}`;
    case 'released':
      return `released ${result.depth} ${result.version}`;
    case 'canceled':
      return `canceled ${result.released}`;
    case 'refused':
      return result.code;
  }
}

export function noticeGist(notice: LockNotice): Gist {
  return `${name(notice.owner)} ${gist(notice.result)}`;
}
