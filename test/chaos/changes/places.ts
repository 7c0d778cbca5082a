/** Where the keys of a round are: the routing keys at which ranges are split. */
import type { Bytes, Random, Span } from '@remora/base';
import { prefixEnd } from '@remora/base';
import { lockSpan } from '@remora/lock';
import { kvRoutingKey, LEASE_SPACE } from '@remora/protocol';

/** The SDK's default namespace. */
const NAMESPACE = 'default';
/** Lease ids are random. */
const LEASE_ID_BYTES = 8;

export function keyPlace(key: string): Span {
  const start = kvRoutingKey(Buffer.from(key));
  return { start, end: Buffer.concat([start, Buffer.of(0)]) };
}

export function prefixPlace(prefix: string): Span {
  const start = kvRoutingKey(Buffer.from(prefix));
  return { start, end: prefixEnd(start) };
}

export function lockPlace(name: string): Span {
  return lockSpan({ namespace: NAMESPACE, name: Buffer.from(name) });
}

/** The record of a lease. */
export function leasePlace(id: bigint): Span {
  const start = Buffer.alloc(1 + LEASE_ID_BYTES, LEASE_SPACE);
  start.writeBigUInt64BE(BigInt.asUintN(64, id), 1);
  return { start, end: Buffer.concat([start, Buffer.of(0)]) };
}

/**
 * Splits that each round has at its start, so that transactions, and several other kinds of load, cover several ranges.
 */
export function firstCuts(r: number): readonly Bytes[] {
  return [`txn/${r}/2`, `txn/${r}/4`, `register/${r}/3`].map((key) => keyPlace(key).start);
}

/** Each splits the keys of a round between keys that clients use together. */
const CUTS: readonly ((r: number, random: Random) => Bytes)[] = [
  (r, random) => keyPlace(`txn/${r}/${1 + random.int(5)}`).start,
  (r, random) => keyPlace(`register/${r}/${1 + random.int(5)}`).start,
  (r) => keyPlace(`list/${r}/1`).start,
  (r, random) => keyPlace(`lease/${r}/c${1 + random.int(3)}`).start,
  (r, random) => lockPlace(`lock/${r}/${random.int(2)}`).start,
  (_r, random) => leasePlace(BigInt(1 + random.int(0x7e)) << 56n).start,
];

/** A routing key at which a range may begin, in the middle of the keys that clients use in this round. */
export function drawCut(r: number, random: Random): Bytes {
  const cut = CUTS[random.int(CUTS.length)];
  if (cut === undefined) throw new Error('there are no cuts');
  return cut(r, random);
}

/** Whether a range that begins there separates keys that clients use in this round. */
export function cutsRound(at: Bytes, r: number): boolean {
  return Buffer.from(at).includes(`/${r}/`);
}
