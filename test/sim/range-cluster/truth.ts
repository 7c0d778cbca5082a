import { compareBytes } from '@remora/base';
import type { KeyValue, KvEvent } from '@remora/protocol';

/** What happened to the keys of a run, by revision: the one history that every observation must agree with. */
export class Truth {
  readonly events: readonly KvEvent[];
  readonly #byValue = new Map<string, number[]>();

  constructor(events: readonly KvEvent[]) {
    this.events = events;
    for (const { type, kv } of events) {
      if (type !== 'put') continue;
      const value = textOf(kv.value);
      const revisions = this.#byValue.get(value) ?? [];
      if (!revisions.includes(kv.modRevision)) revisions.push(kv.modRevision);
      this.#byValue.set(value, revisions);
    }
  }

  /** The revisions at which a value was put. */
  revisionsOf(value: string): readonly number[] {
    return this.#byValue.get(value) ?? [];
  }

  deletedAt(revision: number): boolean {
    return this.events.some((event) => event.type === 'delete' && event.kv.modRevision === revision);
  }

  /** The keys of `[start, end)` as of a revision, as `key=value`. */
  stateAt(revision: number, start: string, end: string | undefined): readonly string[] {
    const state = new Map<string, string>();
    for (const { type, kv } of this.events) {
      if (kv.modRevision > revision) break;
      const key = textOf(kv.key);
      if (key < start || (end === undefined ? key !== start : key >= end)) continue;
      if (type === 'put') state.set(key, textOf(kv.value));
      else state.delete(key);
    }
    return [...state].map(([key, value]) => `${key}=${value}`).sort();
  }
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString();
}

export function shown(kvs: readonly KeyValue[]): readonly string[] {
  return [...kvs].sort((a, b) => compareBytes(a.key, b.key)).map((kv) => `${textOf(kv.key)}=${textOf(kv.value)}`);
}

/** An event as text, to compare what watchers saw. */
export function eventText({ type, kv }: KvEvent): string {
  return `${kv.modRevision}:${type}:${textOf(kv.key)}=${textOf(kv.value)}`;
}
