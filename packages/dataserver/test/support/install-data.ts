/** Replicas to install, and what became of them. For tests. */

import type { Bytes, Engine, Row, SeededRandom, Span } from '@remora/base';
import { crc32 } from '@remora/base';
import type { SnapshotMeta } from '@remora/raft';
import { encodeSnapshot } from '../../src/install/snapshot-stream.ts';
import { rangeSpans } from '../../src/state/bounds.ts';
import { stateKey } from '../../src/state/keys.ts';
import { encodeRangeMeta } from '../../src/state/meta-codec.ts';
import { NEVER_MERGED } from '../../src/state/reshape/merging.ts';
import { CONF, DESCRIPTOR } from './state-bed.ts';

export function metaAt(index: number): SnapshotMeta {
  return { index, term: 2, conf: CONF };
}

/** Replica 11 of range 2, which is alone on its node, and is sent a snapshot of this position. */
export function targetAt(index: number) {
  return {
    rangeId: 2,
    replicaId: 11,
    meta: metaAt(index),
    span: DESCRIPTOR,
    settled: () => Promise.resolve(),
    sharing: () => undefined,
  };
}

/** The state row of range 2 with everything up to `index` applied. */
export function stateAt(index: number, more: { readonly compactRevision?: number } = {}): Row {
  const value = encodeRangeMeta({
    ...{ applied: { index, term: 2 }, appliedAhead: 0, conf: CONF, descriptor: DESCRIPTOR },
    ...{ revision: index, compactRevision: 0, rangeTimeMs: 1, wallMs: 0, keys: 0, bytes: 0, estimatedSince: 0 },
    ...{ merging: NEVER_MERGED, ...more },
  });
  return { key: stateKey(DESCRIPTOR.rangeId), value };
}

/** Rows in leases, locks, keys and history, ascending; `sizes` are of the values of keys. */
export function someRows(random: SeededRandom, counts: { readonly small: number; readonly large: number }): Row[] {
  const rows = new Map<string, Row>();
  const add = (key: Buffer, bytes: number): void => {
    const value = Buffer.alloc(bytes, random.int(256));
    rows.set(key.toString('latin1'), { key, value });
  };
  for (let i = 0; i < counts.small; i++) {
    add(Buffer.from([2 + random.int(3), random.int(256), random.int(256), random.int(256)]), random.int(20));
  }
  for (let i = 0; i < counts.large; i++) add(Buffer.from([3, random.int(256), i]), 300_000);
  return [...rows.values()].sort((a, b) => Buffer.compare(a.key, b.key));
}

/** The stream of range 2 that holds `rows` and stands for `index`. */
export async function streamOf(rows: readonly Row[], index: number, state = stateAt(index)): Promise<Buffer> {
  async function* all() {
    yield [...rows, state];
  }
  const parts: Bytes[] = [];
  const identity = { rangeId: DESCRIPTOR.rangeId, span: DESCRIPTOR, applied: { index, term: 2 } };
  for await (const part of encodeSnapshot(identity, all())) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

/** Tells two sets of rows apart. */
export function digest(rows: readonly Row[]): string {
  let sum = 0;
  for (const { key, value } of rows) sum = crc32(value, crc32(key, crc32(Buffer.from([key.length]), sum)));
  return `${rows.length} rows, ${sum}`;
}

export async function contents(engine: Engine, spans: readonly Span[] = rangeSpans(2, DESCRIPTOR)): Promise<string> {
  const rows: Row[] = [];
  for (const span of spans) rows.push(...(await engine.scan(span)));
  return digest(rows);
}

/** A stream as a transport cuts it. */
export function* pieces(stream: Buffer, random: SeededRandom): Generator<Buffer> {
  for (let at = 0; at < stream.length; ) {
    const length = 1 + random.int(256 * 1024);
    yield stream.subarray(at, at + length);
    at += length;
  }
}
