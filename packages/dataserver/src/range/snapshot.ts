import { assert, copyBytes, type Engine, type Row, type Span } from '@remora/base';
import type { SnapshotMeta, SnapshotReceiver, StateMachineSnapshot } from '@remora/raft';
import { Packr } from 'msgpackr';

/**
 * A replica's data on its way to another: a sequence of parts, each `length(4) [format, key, value, key, value, …]`
 * and about `PART_BYTES` long.
 *
 * N1. The picture is one engine view taken in the same step as the applied position that it stands for.
 * N2. Installing replaces all rows of the range in one synchronous step in memory, and the checkpoint that follows
 *     makes it durable whole: after a crash the replica has either its old state or the new one. The state that is
 *     kept in memory is replaced in that same step, as a checkpoint may begin right after it.
 * N3. Transports cut chunks as they like: a part may come in pieces.
 */
const FORMAT = 1;
const PART_BYTES = 128 * 1024;
const LENGTH_BYTES = 4;
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
          if (bytes < PART_BYTES) continue;
          yield packPart(parts);
          parts = [FORMAT];
          bytes = 0;
        }
      }
    }
    if (parts.length > 1) yield packPart(parts);
  }
  return { meta, chunks: chunks(), release: () => view.release() };
}

function packPart(parts: readonly unknown[]): Buffer {
  const body = packr.pack(parts);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
}

/** Receives chunks; `install` gets all rows when the last one is there. */
export function receiveSnapshot(install: (rows: readonly Row[]) => Promise<void>): SnapshotReceiver {
  let rows: Row[] = [];
  let rest: Buffer[] = [];
  let restBytes = 0;
  /** Pieces of a part are joined when this much is there. */
  let needed = LENGTH_BYTES;

  function takeParts(): void {
    let bytes = Buffer.concat(rest);
    needed = LENGTH_BYTES;
    while (bytes.length >= LENGTH_BYTES) {
      needed = LENGTH_BYTES + bytes.readUInt32BE(0);
      if (bytes.length < needed) break;
      for (const row of unpackPart(bytes.subarray(LENGTH_BYTES, needed))) rows.push(row);
      bytes = bytes.subarray(needed);
      needed = LENGTH_BYTES;
    }
    rest = bytes.length === 0 ? [] : [bytes];
    restBytes = bytes.length;
  }

  return {
    async chunk(bytes) {
      rest.push(copyBytes(bytes));
      restBytes += bytes.length;
      if (restBytes >= needed) takeParts();
    },
    async finish() {
      assert(restBytes === 0, 'a snapshot does not end within a part');
      await install(rows);
      rows = [];
    },
    abort() {
      rows = [];
      rest = [];
    },
  };
}

function* unpackPart(bytes: Buffer): Generator<Row> {
  const parts = packr.unpack(bytes) as unknown[];
  assert(parts[0] === FORMAT, `a snapshot part has format ${String(parts[0])}`);
  for (let i = 1; i + 1 < parts.length; i += 2) {
    yield { key: copyBytes(parts[i] as Uint8Array), value: copyBytes(parts[i + 1] as Uint8Array) };
  }
}

/** N2. `replaced` runs in the step in which the rows are replaced. */
export async function replaceRows(
  engine: Engine,
  spans: readonly Span[],
  rows: readonly Row[],
  replaced: () => void,
): Promise<void> {
  const old = await Promise.all(spans.map((span) => engine.scan(span)));
  for (const part of old) for (const { key } of part) engine.delete(key);
  for (const { key, value } of rows) engine.put(key, value);
  replaced();
}
