import { expect, test } from 'vitest';
import { randomGuid, SeededRandom } from './random.ts';

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
