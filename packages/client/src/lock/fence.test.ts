import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { Fence, type FenceGuard } from './fence.ts';

/** What the cluster would say, and when. */
class Versions {
  readonly current = new Map<string, number>();
  asked = 0;
  down = false;
  /** Holds answers back that were found already. */
  gate: Promise<void> = Promise.resolve();

  guard(namesMax = 100): FenceGuard {
    return this.fence.guard({ namesMax });
  }

  readonly fence = new Fence(async (checks) => {
    this.asked++;
    if (this.down) throw new ServiceError('UNAVAILABLE', 'no gateway');
    const found = checks.map(({ name, version }) => this.current.get(String(name)) === version);
    await this.gate;
    return found;
  });
}

function versions(current: Readonly<Record<string, number>>): Versions {
  const bed = new Versions();
  for (const [name, version] of Object.entries(current)) bed.current.set(name, version);
  return bed;
}

const FENCED = { code: 'FENCED' };

describe('a fence guard', () => {
  test('lets the current version in, and what comes behind it, and never an older one again', async () => {
    const bed = versions({ a: 7 });
    const guard = bed.guard();
    const written: number[] = [];
    const write = (version: number) => guard.run('a', version, () => written.push(version));
    await write(7);
    await write(7);
    await write(9);
    await expect(write(7)).rejects.toMatchObject({ ...FENCED, details: { version: 7, highest: 9 } });
    expect([written, bed.asked, guard.highest('a')]).toEqual([[7, 7, 9], 1, 9]);
  });

  test('asks the cluster about a lock that it has not seen, and refuses a version that is not current', async () => {
    const bed = versions({ a: 8 });
    const guard = bed.guard();
    await expect(guard.run('a', 7, () => 'written')).rejects.toMatchObject(FENCED);
    expect(guard.highest('a')).toBeUndefined();
    expect(await guard.run('a', 8, () => 'written')).toBe('written');
  });

  test('writes nothing while the cluster does not answer, and asks again the next time', async () => {
    const bed = versions({ a: 7 });
    const guard = bed.guard();
    bed.down = true;
    await expect(guard.run('a', 7, () => 'written')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    bed.down = false;
    expect(await guard.run('a', 7, () => 'written')).toBe('written');
  });

  test('runs the writes of one lock one after the other, and those of others beside them', async () => {
    const guard = versions({ a: 1, b: 1 }).guard();
    await guard.run('a', 1, () => {});
    const log: string[] = [];
    let finish = (): void => {};
    const first = guard.run('a', 1, () => {
      log.push('a1 begins');
      return new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
    const failing = guard.run('a', 1, () => {
      log.push('a2');
      throw new Error('disk full');
    });
    const last = guard.run('a', 2, () => log.push('a3'));
    await guard.run('b', 1, () => log.push('b'));
    expect(log).toEqual(['a1 begins', 'b']);
    finish();
    await first;
    await expect(failing).rejects.toThrow('disk full');
    await last;
    expect(log).toEqual(['a1 begins', 'b', 'a2', 'a3']);
  });

  test('forgets the lock that was used longest ago, and asks about that one again', async () => {
    const bed = versions({ a: 1, b: 1, c: 1 });
    const guard = bed.guard(2);
    for (const name of ['a', 'b', 'a', 'c']) await guard.run(name, 1, () => {});
    expect(['a', 'b', 'c'].map((name) => guard.highest(name))).toEqual([1, undefined, 1]);
    bed.current.set('b', 2);
    await expect(guard.run('b', 1, () => {})).rejects.toMatchObject(FENCED);
    expect(bed.asked).toBe(4);
  });

  test('does not let an older version in that was asked about before a newer one wrote (F4)', async () => {
    const bed = versions({ a: 1, b: 1 });
    const guard = bed.guard(1);
    let open = (): void => {};
    bed.gate = new Promise((resolve) => {
      open = resolve;
    });
    const late = guard.run('a', 1, () => 'late');
    bed.gate = Promise.resolve();
    bed.current.set('a', 2);
    await guard.run('b', 1, () => {});
    await guard.run('a', 2, () => {});
    open();
    await expect(late).rejects.toMatchObject(FENCED);
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 60])('refuses %d as a version', async (version) => {
    const bed = versions({});
    await expect(bed.guard().run('a', version, () => {})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(bed.asked).toBe(0);
  });
});

test('a write is told nothing of what the one before it gave', async () => {
  const guard = versions({ a: 7 }).guard();
  const write = (said: unknown = 'nothing'): unknown => said;
  expect([await guard.run('a', 7, () => 'a secret'), await guard.run('a', 7, write)]).toEqual(['a secret', 'nothing']);
});

test('a check says whether a version is current', async () => {
  const { fence } = versions({ a: 7 });
  expect([await fence.check('a', 7), await fence.check('a', 6), await fence.check('b', 7)]).toEqual([
    true,
    false,
    false,
  ]);
});
