import type { Engine } from '@remora/base';
import { applyLockCommand, isCurrent, type LockId, type SessionRef, sessionEnded } from '@remora/lock';
import type { Command, CommandResult } from '@remora/protocol';
import type { Effects } from '../effects.ts';
import type { HeldLocks, KvChanges } from '../kv/kv-changes.ts';
import type { Attached } from '../leases/attachments.ts';
import type { LeaseOwnership } from '../leases/lease-ownership.ts';
import type { DelayedHolds } from './delayed-holds.ts';
import { EngineLockView, lockReader } from './engine-lock-view.ts';

/** The part of a range that commands about locks use. */
export interface LockHolder {
  readonly leaseOwnership: LeaseOwnership;
  readonly delays: DelayedHolds;
  readonly rangeTimeMs: number;
  readonly wallMs: number;
  /** The revision of this command. */
  readonly nextRevision: number;
  revision: number;
  changesAt(revision: number): KvChanges;
  commitAt(revision: number, changes: KvChanges): void;
}

type LockEffects = Pick<
  Effects,
  'onNotice' | 'onForcedRelease' | 'onHoldDelayed' | 'onGrantEnded' | 'onMarkLeft' | 'listeners' | 'meter'
>;

/** The locks of a range, and the attachments of sessions that end. */
export class LockCommands implements HeldLocks {
  readonly #engine: Engine;
  readonly #range: LockHolder;
  readonly #effects: LockEffects;

  constructor(engine: Engine, range: LockHolder, effects: LockEffects) {
    this.#engine = engine;
    this.#range = range;
    this.#effects = effects;
  }

  execute({ command }: Extract<Command, { type: 'lock' }>): CommandResult {
    const view = this.#view(command.lock, this.#range.nextRevision);
    const { result, notices } = applyLockCommand(view, command);
    if (view.changed) this.#range.revision = view.revision;
    if (command.type === 'endDelay') this.#range.delays.remove(command);
    if (command.type === 'forceRelease' && result.type === 'released') {
      this.#effects.onForcedRelease?.(command, result.version);
    }
    for (const notice of notices) this.#effects.onNotice(notice);
    this.#publish(view);
    if (view.markedUntilMs !== undefined) {
      this.#effects.onMarkLeft?.({ lock: command.lock, deadlineMs: view.markedUntilMs });
    }
    // The leader's own command: it answers nobody.
    if (command.type !== 'endDelay') this.#effects.meter?.answered(result);
    return { type: 'lock', result };
  }

  /** Takes keys and locks from a session that has ended, all at one revision. */
  release(session: SessionRef, { keys, locks }: Attached): void {
    const range = this.#range;
    const revision = range.nextRevision;
    const views = locks.map((lock) => this.#view(lock, revision));
    const ends = views.map((view) => sessionEnded(view, session, view.lock));
    const changes = range.changesAt(revision);
    for (const key of keys) changes.deleteOwned(key, session.lease);
    if (changes.any) range.commitAt(revision, changes);
    else if (locks.length > 0) range.revision = revision;
    for (const { notices, delayed } of ends) {
      for (const notice of notices) this.#effects.onNotice(notice);
      for (const hold of delayed) {
        range.delays.add(hold);
        this.#effects.onHoldDelayed(hold);
      }
    }
    for (const view of views) this.#publish(view);
  }

  #publish({ lock, revision, events }: EngineLockView): void {
    if (events !== undefined && events.length > 0) this.#effects.listeners?.publish(lock, revision, events);
  }

  isHeld(lock: LockId, version: number): boolean {
    return isCurrent(lockReader(this.#engine), lock, version);
  }

  #view(lock: LockId, revision: number): EngineLockView {
    const { leaseOwnership, rangeTimeMs, wallMs } = this.#range;
    const events = this.#effects.listeners?.wants(lock) ? [] : undefined;
    const { meter } = this.#effects;
    const applied = { lock, revision, timeMs: rangeTimeMs, wallMs, events, meter, watchers: this.#effects };
    return new EngineLockView(this.#engine, leaseOwnership, applied);
  }
}
