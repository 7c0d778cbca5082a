import { assert, type Bytes, compareBytes, type ResidentValue, type Row } from '@remora/base';
import {
  type LockEvent,
  type LockId,
  type LockMeter,
  type LockName,
  type LockNames,
  type LockView,
  lockOfName,
  type SessionRef,
} from '../src/index.ts';

/** A row as it was put. */
interface PutRow {
  readonly key: Bytes;
  readonly value: ResidentValue;
}

/** A range's view in memory: rows in order, sessions that end when told to, and a count of what was asked of it. */
export class MemoryView implements LockView {
  revision = 1;
  timeMs = 1_000;
  wallMs = 50_000;
  readonly #rows: PutRow[] = [];
  readonly #alive = new Set<string>();
  /** Since they were last taken. */
  #events: LockEvent[] = [];
  /** Attached locks by session. */
  readonly #attached = new Map<string, Set<LockName>>();
  readonly calls = { get: 0, put: 0, delete: 0, scan: 0, rowsScanned: 0, attach: 0, detach: 0 };

  readonly onEvent = (event: LockEvent): void => {
    this.#events.push(event);
  };

  /** What the meter makes of it: who holds and who waits, over all locks. */
  readonly counted = { holders: 0, waiters: 0 };
  readonly meter: LockMeter = {
    granted: (_mode, waitedMs) => {
      this.counted.holders += 1;
      if (waitedMs !== undefined) this.counted.waiters -= 1;
    },
    ended: () => {
      this.counted.holders -= 1;
    },
    queued: () => {
      this.counted.waiters += 1;
    },
    left: () => {
      this.counted.waiters -= 1;
    },
  };

  takeEvents(): readonly LockEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  get rows(): readonly Row[] {
    return this.#rows.map(encodedRow);
  }

  resetCalls(): void {
    for (const name of Object.keys(this.calls) as (keyof typeof this.calls)[]) this.calls[name] = 0;
  }

  begin(session: SessionRef): void {
    this.#alive.add(sessionKey(session));
  }

  end(session: SessionRef): void {
    this.#alive.delete(sessionKey(session));
  }

  attachedLocks(session: SessionRef): readonly LockId[] {
    return [...(this.#attached.get(sessionKey(session)) ?? [])].map(lockOfName);
  }

  get attachments(): number {
    let count = 0;
    for (const locks of this.#attached.values()) count += locks.size;
    return count;
  }

  get(key: Bytes): Bytes | undefined {
    const value = this.#get(key);
    return value === undefined ? undefined : encoded(value);
  }

  getNamed(name: string): ResidentValue | undefined {
    return this.#get(keyOf(name));
  }

  putNamed(name: string, value: ResidentValue): void {
    this.put(keyOf(name), value);
  }

  deleteNamed(name: string): void {
    this.delete(keyOf(name));
  }

  #get(key: Bytes): ResidentValue | undefined {
    this.calls.get += 1;
    const row = this.#rows[this.#find(key)];
    return row !== undefined && compareBytes(row.key, key) === 0 ? row.value : undefined;
  }

  put(key: Bytes, value: ResidentValue): void {
    this.calls.put += 1;
    const at = this.#find(key);
    const row = this.#rows[at];
    const same = row !== undefined && compareBytes(row.key, key) === 0;
    this.#rows.splice(at, same ? 1 : 0, { key, value });
  }

  delete(key: Bytes): void {
    this.calls.delete += 1;
    const at = this.#find(key);
    const row = this.#rows[at];
    assert(row !== undefined && compareBytes(row.key, key) === 0, 'only rows that exist are deleted');
    this.#rows.splice(at, 1);
  }

  scan(start: Bytes, end: Bytes, limit: number): readonly Row[] {
    this.calls.scan += 1;
    const from = this.#find(start);
    let to = end.length === 0 ? this.#rows.length : this.#find(end);
    if (limit > 0) to = Math.min(to, from + limit);
    const rows = this.#rows.slice(from, to).map(encodedRow);
    this.calls.rowsScanned += rows.length;
    return rows;
  }

  sessionAlive(session: SessionRef): boolean {
    return this.#alive.has(sessionKey(session));
  }

  attach(session: SessionRef, { lock }: LockNames, isFirst: boolean): void {
    this.calls.attach += 1;
    assert(!isFirst || this.#isUnattached(lock), 'W4: nobody is attached to a lock of which nothing exists');
    assert(this.sessionAlive(session), 'only a living session is attached');
    const key = sessionKey(session);
    const locks = this.#attached.get(key) ?? new Set<LockName>();
    locks.add(lock);
    this.#attached.set(key, locks);
  }

  isAttached(session: SessionRef, { lock }: LockNames): boolean {
    return this.#attached.get(sessionKey(session))?.has(lock) === true;
  }

  #isUnattached(lock: LockName): boolean {
    return [...this.#attached.values()].every((locks) => !locks.has(lock));
  }

  detach(session: SessionRef, { lock }: LockNames): void {
    this.calls.detach += 1;
    this.#attached.get(sessionKey(session))?.delete(lock);
  }

  #find(key: Bytes): number {
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = this.#rows[middle];
      if (row !== undefined && compareBytes(row.key, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function sessionKey(session: SessionRef): string {
  return `${session.lease}/${session.incarnation}`;
}

function keyOf(name: string): Buffer {
  return Buffer.from(name, 'latin1');
}

function encoded(value: ResidentValue): Bytes {
  return value instanceof Uint8Array ? value : value.encode();
}

function encodedRow({ key, value }: PutRow): Row {
  return { key, value: encoded(value) };
}
