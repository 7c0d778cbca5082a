import type { KeyValue } from '@remora/protocol';
import { expect, test } from 'vitest';
import { KeyHash } from './key-hash.ts';

const PAIR: KeyValue = {
  ...{ key: Buffer.from('k'), value: Buffer.from('v'), createRevision: 2, modRevision: 3, version: 2, lease: 0n },
};

function hashOf(...pairs: readonly KeyValue[]): number {
  const hash = new KeyHash();
  for (const pair of pairs) hash.add(pair);
  return hash.value;
}

test('nothing hashes to 0, and the hash is pinned: a cluster may have nodes of two versions', () => {
  expect(hashOf()).toBe(0);
  expect(hashOf(PAIR)).toBe(2_660_479_111);
});

test.each<Partial<KeyValue>>([
  { key: Buffer.from('l') },
  { value: Buffer.from('w') },
  { key: Buffer.from('kv'), value: Buffer.alloc(0) },
  { createRevision: 3 },
  { modRevision: 4 },
  { version: 3 },
  { lease: -1n },
])('%o gives another hash', (change) => {
  expect(hashOf({ ...PAIR, ...change })).not.toBe(hashOf(PAIR));
});

test('the order of the pairs counts, and each pair does', () => {
  const other = { ...PAIR, key: Buffer.from('l') };
  const all = [hashOf(PAIR), hashOf(PAIR, other), hashOf(other, PAIR)];
  expect(new Set(all).size).toBe(3);
});
