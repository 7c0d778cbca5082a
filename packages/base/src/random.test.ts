import { expect, test } from 'vitest';
import { GuidSeries, randomGuid, SeededRandom } from './random.ts';

test('a GUID is what its random bytes say, with the version and variant of RFC 9562 in their places', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const bytes = new SeededRandom(seed).bytes(16).toString('hex');
    const guid = randomGuid(new SeededRandom(seed));
    expect(guid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const digits = guid.replaceAll('-', '');
    expect([digits.slice(0, 12), digits.slice(13, 16), digits.slice(17)]).toEqual([
      bytes.slice(0, 12),
      bytes.slice(13, 16),
      bytes.slice(17),
    ]);
  }
});

test('GUIDs of a series differ in their last twelve digits, which count on, and carry', () => {
  const series = new GuidSeries(new SeededRandom(1));
  const guids = Array.from({ length: 5_000 }, () => series.next());
  const prefix = guids[0]?.slice(0, -12) ?? '';
  expect(prefix).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-$/);
  expect(guids).toEqual(guids.map((_, i) => prefix + (i + 1).toString(16).padStart(12, '0')));
  expect(new GuidSeries(new SeededRandom(2)).next().slice(0, -12)).not.toBe(prefix);
});
