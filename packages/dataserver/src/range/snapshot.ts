import { assert, type Engine, type Row, type Span } from '@remora/base';
import type { SnapshotMeta, SnapshotReceiver, StateMachineSnapshot } from '@remora/raft';
import { Packr } from 'msgpackr';

/**
 * A replica's data on its way to another. A chunk is `[format, key, value, key, value, …]`, about `CHUNK_BYTES` long.
 *
 * N1. The picture is one engine view taken in the same step as the applied position that it stands for.
 * N2. Installing replaces all rows of the range in one synchronous step in memory, and the checkpoint that follows
 *     makes it durable whole: after a crash the replica has either its old state or the new one.
 */
const FORMAT = 1;
const CHUNK_BYTES = 128 * 1024;
const packr = new Packr({ useRecords: false });

export function takeSnapshot(engine: Engine, meta: SnapshotMeta, spans: readonly Span[]): StateMachineSnapshot {
  const view = engine.view();
  async function* chunks(): AsyncGenerator<Uint8Array> {
    let parts: unknown[] = [FORMAT];
    let bytes = 0;
    for (const span of spans) {
      for await (const rows of view.scan(span)) {
        for (const row of rows) {
          parts.push(row.key, row.value);
          bytes += row.key.length + row.value.length + 8;
          if (bytes < CHUNK_BYTES) continue;
          yield packr.pack(parts);
          parts = [FORMAT];
          bytes = 0;
        }
      }
    }
    if (parts.length > 1) yield packr.pack(parts);
  }
  return { meta, chunks: chunks(), release: () => view.release() };
}

/** Receives chunks; `install` gets all rows when the last one is there. */
export function receiveSnapshot(install: (rows: readonly Row[]) => Promise<void>): SnapshotReceiver {
  let rows: Row[] = [];
  return {
    async chunk(bytes) {
      const parts = packr.unpack(bytes) as unknown[];
      assert(parts[0] === FORMAT, `a snapshot chunk has format ${String(parts[0])}`);
      for (let i = 1; i + 1 < parts.length; i += 2) {
        rows.push({ key: Buffer.from(parts[i] as Uint8Array), value: Buffer.from(parts[i + 1] as Uint8Array) });
      }
    },
    async finish() {
      await install(rows);
      rows = [];
    },
    abort() {
      rows = [];
    },
  };
}

/** N2. */
export async function replaceRows(engine: Engine, spans: readonly Span[], rows: readonly Row[]): Promise<void> {
  const old: (readonly Row[])[] = [];
  for (const span of spans) old.push(await engine.scan(span));
  for (const part of old) for (const { key } of part) engine.delete(key);
  for (const { key, value } of rows) engine.put(key, value);
}
