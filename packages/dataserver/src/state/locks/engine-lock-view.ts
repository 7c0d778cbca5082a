import type { Bytes, Engine, ResidentValue } from '@remora/base';
import type { LockEvent, LockId, LockMeter, LockNames, LockView, SessionRef } from '@remora/lock';
import type { LeaseOwnership } from '../leases/lease-ownership.ts';

/** Reads locks from the current state. */
export function lockReader(engine: Engine): Pick<LockView, 'get' | 'scan'> {
  return {
    get: (key) => engine.get(key),
    scan: (start, end, limit) => engine.scanResident({ start, end, limit }),
  };
}

/** The moment at which a command about a lock is applied. */
interface Applied {
  readonly lock: LockId;
  readonly revision: number;
  readonly timeMs: number;
  readonly wallMs: number;
  /** Collects the events of the lock; undefined without listeners. */
  readonly events: LockEvent[] | undefined;
  /** Counts what happens; undefined where nothing is counted. */
  readonly meter: LockMeter | undefined;
  /** Receives the grants that end. */
  readonly watchers: GrantWatchers;
}

/** Receives the grants that end, if anyone watches any. */
export interface GrantWatchers {
  onGrantEnded?(lock: LockId, version: number): void;
}

/** The lock layer's access to the engine during one command, for one lock. */
export class EngineLockView implements LockView {
  readonly revision: number;
  readonly timeMs: number;
  readonly wallMs: number;
  readonly lock: LockId;
  readonly events: readonly LockEvent[] | undefined;
  readonly onEvent: ((event: LockEvent) => void) | undefined;
  readonly meter: LockMeter | undefined;
  readonly #engine: Engine;
  readonly #leaseOwnership: LeaseOwnership;
  readonly #watchers: GrantWatchers;
  changed = false;
  /** The earliest end of the marks that the command has left; undefined: it left none. */
  markedUntilMs: number | undefined;

  constructor(
    engine: Engine,
    leaseOwnership: LeaseOwnership,
    { lock, revision, timeMs, wallMs, events, meter, watchers }: Applied,
  ) {
    this.#engine = engine;
    this.#leaseOwnership = leaseOwnership;
    this.#watchers = watchers;
    this.lock = lock;
    this.revision = revision;
    this.timeMs = timeMs;
    this.wallMs = wallMs;
    this.events = events;
    this.meter = meter;
    this.onEvent = events && ((event) => events.push(event));
  }

  get(key: Bytes): Bytes | undefined {
    return this.#engine.get(key);
  }

  put(key: Bytes, value: Bytes): void {
    this.changed = true;
    this.#engine.put(key, value);
  }

  delete(key: Bytes): void {
    this.changed = true;
    this.#engine.delete(key);
  }

  getNamed(name: string): ResidentValue | undefined {
    return this.#engine.getResident(name);
  }

  putNamed(name: string, value: ResidentValue): void {
    this.changed = true;
    this.#engine.putResident(name, value);
  }

  deleteNamed(name: string): void {
    this.changed = true;
    this.#engine.deleteResident(name);
  }

  scan(start: Bytes, end: Bytes, limit: number) {
    return this.#engine.scanResident({ start, end, limit });
  }

  markLeft(deadlineMs: number): void {
    this.markedUntilMs = Math.min(deadlineMs, this.markedUntilMs ?? deadlineMs);
  }

  grantEnded(version: number): void {
    this.#watchers.onGrantEnded?.(this.lock, version);
  }

  sessionAlive(session: SessionRef): boolean {
    return this.#leaseOwnership.alive(session, this.lock);
  }

  attach(session: SessionRef, names: LockNames, isFirst: boolean): void {
    this.#leaseOwnership.attachLock(session, names, isFirst);
  }

  isAttached(session: SessionRef, names: LockNames): boolean {
    return this.#leaseOwnership.hasLock(session, names);
  }

  detach(session: SessionRef, names: LockNames): void {
    this.#leaseOwnership.detachLock(session, names);
  }
}
