import { describe, expect, test } from 'vitest';
import {
  attachedKeyRow,
  currentKey,
  historyKey,
  leaseKey,
  stateKey,
} from '../../../../packages/dataserver/src/state/keys.ts';
import { memoryEngine } from '../../../../packages/dataserver/test/support/state-bed.ts';
import { WatchedEngine } from './watched-engine.ts';

const KEY = Buffer.from('k');
const VALUE = Buffer.from('v');

function digestOf(work: (engine: WatchedEngine) => void): number {
  const engine = new WatchedEngine(memoryEngine());
  work(engine);
  return engine.takeDigest();
}

const put = (key: Buffer, value = VALUE) => digestOf((engine) => engine.put(key, value));

describe('the digest of what apply writes', () => {
  test('is the same for the same writes, and another for others', () => {
    const digests = [
      put(currentKey(KEY)),
      put(currentKey(KEY), Buffer.from('w')),
      put(historyKey(KEY, 3)),
      put(attachedKeyRow(leaseKey(1n), KEY)),
      digestOf((engine) => engine.delete(currentKey(KEY))),
      digestOf((engine) => {
        engine.put(currentKey(KEY), VALUE);
        engine.put(currentKey(KEY), VALUE);
      }),
    ];
    expect(new Set(digests).size).toBe(digests.length);
    expect(digests).not.toContain(0);
    expect(put(currentKey(KEY))).toBe(digests[0]);
  });

  test('has nothing of what each replica does in its own time', () => {
    expect(put(stateKey(2))).toBe(0);
    expect(digestOf((engine) => engine.delete(historyKey(KEY, 3)))).toBe(0);
  });

  test('begins anew when it is taken', () => {
    const engine = new WatchedEngine(memoryEngine());
    engine.put(currentKey(KEY), VALUE);
    engine.takeDigest();
    expect(engine.takeDigest()).toBe(0);
  });
});
