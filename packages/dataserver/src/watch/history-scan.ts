import { asBuffer, type Bytes, type Clock, compareBytes, type Engine, type EngineView } from '@remora/base';
import type { KeyRange, KeyValue, KvEvent } from '@remora/protocol';
import { nextTurn } from '../engine/merge.ts';
import { currentSpan, historySpan, parseHistoryKey, userKeyOfCurrent } from '../state/keys.ts';
import { decodeVersion, isDeletion, modRevisionOf, toKeyValue } from '../state/kv/record.ts';
import { bytesOf, type RevisionEvents } from './event-ring.ts';

/** The largest number of events, and of their bytes, that one scan keeps; the next scan finds the others. */
const EVENTS_MAX = 20_000;
const BYTES_MAX = 16 * 1024 * 1024;

interface Found {
  readonly revision: number;
  readonly event: KvEvent;
  /** A current record: its predecessor is looked up in history when a watch wants it. */
  readonly needsPrev: boolean;
}

/**
 * The oldest changes of a span with revisions in `[from, below)`, read from storage. `upTo`: everything of the span
 * below this revision is included.
 *
 * H1. Memory is bounded: only the oldest `EVENTS_MAX` changes or `BYTES_MAX` bytes are kept, whatever the span holds; a
 *     revision is included whole or not at all.
 */
export async function scanHistory(
  { engine, clock }: { readonly engine: Engine; readonly clock: Clock },
  range: KeyRange,
  revisions: { readonly from: number; readonly below: number },
  withPrev: boolean,
): Promise<{ readonly groups: readonly RevisionEvents[]; readonly upTo: number }> {
  const view = engine.view();
  try {
    const kept = new OldestEvents(revisions.below);
    await collectHistory(view, range, revisions.from, kept);
    await collectCurrent(view, range, revisions.from, kept);
    // Sorting, grouping and what the caller does each take some milliseconds: other work runs between them.
    await nextTurn(clock);
    const { found, upTo } = kept.finish();
    if (withPrev) await addPrevious(view, found);
    await nextTurn(clock);
    return { groups: groupByRevision(found), upTo };
  } finally {
    view.release();
  }
}

async function collectHistory(view: EngineView, range: KeyRange, from: number, kept: OldestEvents): Promise<void> {
  let lastKey: Bytes | undefined;
  let lastKv: KeyValue | undefined;
  for await (const rows of view.scan(historySpan(range))) {
    for (const row of rows) {
      const { key, revision } = parseHistoryKey(row.key);
      const prev = lastKey !== undefined && key.equals(lastKey) ? lastKv : undefined;
      const kv = isDeletion(row.value) ? undefined : toKeyValue(key, decodeVersion(row.value));
      if (revision >= from) kept.add({ revision, event: toEvent(key, revision, kv, prev), needsPrev: false });
      lastKey = key;
      lastKv = kv;
    }
  }
}

async function collectCurrent(view: EngineView, range: KeyRange, from: number, kept: OldestEvents): Promise<void> {
  for await (const rows of view.scan(currentSpan(range))) {
    for (const row of rows) {
      const revision = modRevisionOf(row.value);
      if (revision < from) continue;
      const key = userKeyOfCurrent(row.key);
      kept.add({
        revision,
        event: toEvent(key, revision, toKeyValue(key, decodeVersion(row.value)), undefined),
        needsPrev: true,
      });
    }
  }
}

function toEvent(key: Bytes, revision: number, kv: KeyValue | undefined, prev: KeyValue | undefined): KvEvent {
  const type = kv === undefined ? ('delete' as const) : ('put' as const);
  const shown = kv ?? {
    key,
    value: key.subarray(0, 0),
    createRevision: 0,
    modRevision: revision,
    version: 0,
    lease: 0n,
  };
  return prev === undefined ? { type, kv: shown } : { type, kv: shown, prev };
}

async function addPrevious(view: EngineView, found: Found[]): Promise<void> {
  for (const [i, item] of found.entries()) {
    if (!item.needsPrev || item.event.kv.version === 1) continue;
    const key = item.event.kv.key;
    for await (const rows of view.scan({ ...historySpan({ key }), reverse: true, limit: 1 })) {
      const row = rows[0];
      if (row === undefined || isDeletion(row.value)) continue;
      found[i] = { ...item, event: { ...item.event, prev: toKeyValue(asBuffer(key), decodeVersion(row.value)) } };
    }
  }
}

/** H1. Keeps the oldest events seen; `#below` falls as newer ones are pushed out. */
class OldestEvents {
  #found: Found[] = [];
  #bytes = 0;
  #below: number;
  /** Doubles the bounds, or what a single revision left above them: each event is sorted a bounded number of times. */
  #shrinkAt = { events: 2 * EVENTS_MAX, bytes: 2 * BYTES_MAX };

  constructor(below: number) {
    this.#below = below;
  }

  add(found: Found): void {
    if (found.revision >= this.#below) return;
    this.#found.push(found);
    this.#bytes += bytesOf([found.event]);
    if (this.#found.length >= this.#shrinkAt.events || this.#bytes >= this.#shrinkAt.bytes) this.#shrink();
  }

  #shrink(): void {
    this.#found.sort(inOrder);
    let bytes = 0;
    let end = 0;
    while (end < EVENTS_MAX && bytes < BYTES_MAX && end < this.#found.length) {
      const found = this.#found[end++];
      bytes += found === undefined ? 0 : bytesOf([found.event]);
    }
    const first = this.#found[0]?.revision ?? this.#below;
    const cut = this.#found[end]?.revision ?? this.#below;
    // A single revision larger than the bounds is kept whole.
    this.#below = cut === first ? cut + 1 : cut;
    this.#found = this.#found.filter((item) => item.revision < this.#below);
    this.#bytes = bytesOf(this.#found.map((item) => item.event));
    this.#shrinkAt = {
      events: 2 * Math.max(EVENTS_MAX, this.#found.length),
      bytes: 2 * Math.max(BYTES_MAX, this.#bytes),
    };
  }

  finish(): { readonly found: Found[]; readonly upTo: number } {
    this.#found.sort(inOrder);
    return { found: this.#found, upTo: this.#below };
  }
}

/**
 * History does not know in which order a command changed its keys: within a revision they come in the order of keys.
 */
function inOrder(a: Found, b: Found): number {
  return a.revision - b.revision || compareBytes(a.event.kv.key, b.event.kv.key);
}

function groupByRevision(found: readonly Found[]): readonly RevisionEvents[] {
  const groups: { revision: number; events: KvEvent[] }[] = [];
  for (const { revision, event } of found) {
    const last = groups[groups.length - 1];
    if (last !== undefined && last.revision === revision) last.events.push(event);
    else groups.push({ revision, events: [event] });
  }
  return groups;
}
