import type { Bytes, Engine } from '@remora/base';
import type { LockView } from '@remora/lock';
import type { Leases } from './leases.ts';

/** The lock layer's window on the engine during one command. */
export class EngineLockView implements LockView {
  readonly revision: number;
  readonly timeMs: number;
  readonly wallMs: number;
  readonly #engine: Engine;
  readonly #leases: Leases;
  changed = false;

  constructor(
    engine: Engine,
    leases: Leases,
    at: { readonly revision: number; readonly timeMs: number; readonly wallMs: number },
  ) {
    this.#engine = engine;
    this.#leases = leases;
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
    return this.#leases.alive(session);
  }

  attach(...[session, lock]: Parameters<LockView['attach']>): void {
    this.#leases.attachLock(session, lock);
  }

  detach(...[session, lock]: Parameters<LockView['detach']>): void {
    this.#leases.detachLock(session, lock);
  }
}
