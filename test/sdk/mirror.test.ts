import { SeededRandom } from '@remora/base';
import type { KvMirror, RemoraClient } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

let world: World;
let client: RemoraClient;
let writer: RemoraClient;
beforeEach(async () => {
  world = new World();
  [client, writer] = [await world.client(), await world.client()];
});

async function mirrored(prefix = 'm/', options = {}): Promise<KvMirror> {
  const mirror = client.kv.mirror({ prefix }, options);
  await world.until(mirror.ready());
  return mirror;
}

function contents(mirror: KvMirror): readonly string[] {
  return mirror.values().map((pair) => `${pair.key}=${pair.text()}@${pair.modRevision}`);
}

/** What the cluster says that the keys were at a revision. */
async function truth(revision: number, prefix = 'm/'): Promise<readonly string[]> {
  const { kvs } = await world.until(writer.kv.range({ prefix }, { revision }));
  return kvs.map((pair) => `${pair.key}=${pair.text()}@${pair.modRevision}`);
}

test('a mirror has what is there, and then every change', async () => {
  await world.until(writer.kv.put('m/a', '1'));
  await world.until(writer.kv.put('other', 'x'));
  const mirror = await mirrored();
  expect([mirror.size, mirror.get('m/a')?.text(), mirror.get('other')]).toEqual([1, '1', undefined]);
  await world.until(writer.kv.put('m/b', '2'));
  const { revision } = await world.until(writer.kv.delete('m/a'));
  await world.until(mirror.reaches(revision));
  expect(mirror.values().map((pair) => pair.text())).toEqual(['2']);
  expect(mirror.revision).toBeGreaterThanOrEqual(revision);
});

/** Writes at random, now and then cuts connections or compacts, and looks at the copy at each of its changes. */
test.each([1, 2, 3, 4, 5, 6])(
  'whatever happens, a mirror is the keys at its revision, with seed %i (MI1, MI2)',
  async (seed) => {
    const random = new SeededRandom(seed);
    const mirror = await mirrored();
    const shown: { readonly revision: number; readonly contents: readonly string[] }[] = [];
    mirror.onChange(() => shown.push({ revision: mirror.revision, contents: contents(mirror) }));
    const history = new Map<number, readonly string[]>();
    let last = 0;
    for (let i = 0; i < 60; i++) {
      const key = `m/${random.int(6)}`;
      const dice = random.int(10);
      if (dice < 5) last = (await world.until(writer.kv.put(key, `${i}`))).revision;
      else if (dice < 7) last = (await world.until(writer.kv.delete(key))).revision;
      else {
        const other = `m/${6 + random.int(6)}`;
        const both = writer.kv.transaction().put(key, `${i}`).put(other, `${i}`).commit();
        last = (await world.until(both)).revision;
      }
      history.set(last, await truth(last));
      if (random.int(8) === 0) world.sever();
      if (random.int(12) === 0 && last > 2) await world.until(writer.kv.compact(last).catch(() => {}));
      if (random.int(3) === 0) await world.run(random.int(2_000));
    }
    const { revision } = await world.until(writer.kv.put('m/end', 'x'));
    history.set(revision, await truth(revision));
    await world.until(mirror.reaches(revision));
    expect(contents(mirror)).toEqual(await truth(revision));
    expect(shown.length).toBeGreaterThan(5);
    const revisions = shown.map((one) => one.revision);
    expect(revisions).toEqual([...revisions].sort((a, b) => a - b)); // MI2
    for (const one of shown) {
      const known = history.get(one.revision);
      if (known !== undefined) expect(one.contents).toEqual(known); // MI1
    }
  },
);

test('a mirror whose revision was compacted while it was cut off is read again (MI3)', async () => {
  await world.until(writer.kv.put('m/a', '1'));
  const mirror = await mirrored();
  world.frozen.add('a:1');
  world.frozen.add('b:1');
  world.sever();
  await world.run(1_000);
  world.frozen.clear();
  const { keys } = world.backend;
  const flags = { prevKv: false, ignoreValue: false, ignoreLease: false };
  const REQUEST = { timeoutMs: 1_000, principal: undefined };
  for (const value of ['2', '3']) {
    const op = { type: 'put', key: Buffer.from('m/a'), value: Buffer.from(value), lease: 0n, ...flags } as const;
    keys.command({ type: 'kv', op }, REQUEST, () => {});
  }
  await world.run(20);
  keys.command({ type: 'compact', revision: 4 }, REQUEST, () => {});
  await world.until(mirror.reaches(4));
  expect(mirror.get('m/a')?.text()).toBe('3');
});

describe('a mirror that has ended', () => {
  test('because it was closed serves nothing any more (MI4)', async () => {
    const mirror = await mirrored();
    const waiting = codeOf(mirror.reaches(1_000));
    mirror.close();
    expect([await world.until(waiting), mirror.signal.aborted]).toEqual(['CANCELED', true]);
    expect(() => mirror.get('m/a')).toThrow(/closed/);
    expect(() => mirror.values()).toThrow(/closed/);
  });

  test('with its client, or by its signal', async () => {
    const stop = new AbortController();
    const [one, other] = [await mirrored('m/', { signal: stop.signal }), await mirrored()];
    stop.abort();
    await world.until(client.close());
    await world.run(1_000);
    expect([one.signal.aborted, other.signal.aborted]).toEqual([true, true]);
  });

  test('because there are too many keys says so', async () => {
    const mirror = await mirrored('m/', { keysMax: 1 });
    await world.until(writer.kv.put('m/a', '1'));
    const { revision } = await world.until(writer.kv.put('m/b', '2'));
    expect(await world.until(codeOf(mirror.reaches(revision)))).toBe('RESOURCE_EXHAUSTED');
    expect(mirror.signal.reason.message).toMatch(/more than 1 keys; raise keysMax/);
  });
});

test('a listener that throws harms nobody, and one that was removed is not called', async () => {
  const mirror = await mirrored();
  const heard: number[] = [];
  mirror.onChange(() => {
    throw new Error('listener');
  });
  const forget = mirror.onChange(({ size }) => heard.push(size));
  await world.until(mirror.reaches((await world.until(writer.kv.put('m/a', '1'))).revision));
  forget();
  await world.until(mirror.reaches((await world.until(writer.kv.put('m/b', '1'))).revision));
  expect([heard, mirror.size]).toEqual([[1], 2]);
});
