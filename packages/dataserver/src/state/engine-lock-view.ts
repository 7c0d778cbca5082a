import type { Bytes, Engine } from '@remora/base';
import type { LockId, LockView } from '@remora/lock';
import type { Belongings } from './belongings.ts';

/** Reads of locks as they are at the moment. */
export function lockReader(engine: Engine): Pick<LockView, 'get' | 'scan'> {
  return {
    get: (key) => engine.get(key),
    scan: (start, end, limit) => engine.scanResident({ start, end, limit }),
  };
}

/** The lock layer's window on the engine during one command, for one lock. */
export class EngineLockView implements LockView {
  readonly revision: number;
  readonly timeMs: number;
  readonly wallMs: number;
  readonly #engine: Engine;
  readonly #belongings: Belongings;
  readonly #lock: LockId;
  changed = false;

  constructor(
    engine: Engine,
    belongings: Belongings,
    at: { readonly lock: LockId; readonly revision: number; readonly timeMs: number; readonly wallMs: number },
  ) {
    this.#engine = engine;
    this.#belongings = belongings;
    this.#lock = at.lock;
    this.revision = at.revision;
    this.timeMs = at.timeMs;
    this.wallMs = at.wallMs;
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

  scan(start: Bytes, end: Bytes, limit: number) {
    return this.#engine.scanResident({ start, end, limit });
  }

  sessionAlive(session: Parameters<LockView['sessionAlive']>[0]): boolean {
    return this.#belongings.alive(session, this.#lock);
  }

  attach(...[session, lock]: Parameters<LockView['attach']>): void {
    this.#belongings.attachLock(session, lock);
  }

  detach(...[session, lock]: Parameters<LockView['detach']>): void {
    this.#belongings.detachLock(session, lock);
  }
}
