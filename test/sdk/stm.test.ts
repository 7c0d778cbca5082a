import { SeededRandom } from '@remora/base';
import type { RemoraClient, Stm } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

let world: World;
let client: RemoraClient;
beforeEach(async () => {
  world = new World();
  client = await world.client();
});

const ACCOUNTS = ['a', 'b', 'c'].map((name) => `accounts/${name}`);

async function numberOf(t: Stm, key: string): Promise<number> {
  return Number((await t.get(key))?.text() ?? 0);
}

async function transfer(t: Stm, from: string, to: string): Promise<void> {
  const [left, right] = [await numberOf(t, from), await numberOf(t, to)];
  t.put(from, String(left - 1));
  t.put(to, String(right + 1));
}

async function valuesOf(prefix: string): Promise<readonly string[]> {
  const { kvs } = await world.until(client.kv.range({ prefix }));
  return kvs.map((pair) => `${pair.key}=${pair.text()}`);
}

test('transfers between accounts at once keep the sum, and no run sees another sum (ST1, ST2)', async () => {
  for (const account of ACCOUNTS) await world.until(client.kv.put(account, '100'));
  const clients = await Promise.all([1, 2, 3].map(() => world.client()));
  const random = new SeededRandom(1);
  const sums = new Set<number>();
  const one = (): string => ACCOUNTS[random.int(ACCOUNTS.length)] ?? '';
  const runs = clients.flatMap((each) =>
    Array.from({ length: 8 }, () => {
      const [from, to] = [one(), one()];
      return each.kv.stm(
        async (t) => {
          sums.add((await Promise.all(ACCOUNTS.map((account) => numberOf(t, account)))).reduce((a, b) => a + b, 0));
          if (from !== to) await transfer(t, from, to);
        },
        { timeout: '60s' },
      );
    }),
  );
  await world.until(Promise.all(runs));
  const now = (await valuesOf('accounts/')).map((text) => Number(text.split('=')[1]));
  expect([now.reduce((a, b) => a + b, 0), [...sums]]).toEqual([300, [300]]);
});

test('of two runs that each read what the other writes, one is repeated (no write skew)', async () => {
  await world.until(client.kv.put('on-call/ada', 'yes'));
  await world.until(client.kv.put('on-call/bob', 'yes'));
  const other = await world.client();
  let runs = 0;
  const leave = (of: RemoraClient, who: string): Promise<void> =>
    of.kv.stm(async (t) => {
      runs++;
      const onCall = (await t.range({ prefix: 'on-call/' })).filter((pair) => pair.text() === 'yes');
      if (onCall.length > 1) t.put(`on-call/${who}`, 'no');
    });
  await world.until(Promise.all([leave(client, 'ada'), leave(other, 'bob')]));
  expect(await valuesOf('on-call/')).toHaveLength(2);
  expect((await valuesOf('on-call/')).filter((text) => text.endsWith('=yes'))).toHaveLength(1);
  expect(runs).toBe(3);
});

/** What another client does while a run has read and not yet written. */
const MEANWHILE: readonly { readonly name: string; readonly change: () => Promise<unknown>; readonly runs: number }[] =
  [
    { name: 'puts a key that was read', change: () => client.kv.put('in/a', 'x'), runs: 2 },
    { name: 'puts the same value again', change: () => client.kv.put('in/a', '1'), runs: 2 },
    { name: 'deletes a key of a range that was read', change: () => client.kv.delete('in/b'), runs: 2 },
    { name: 'adds a key to a range that was read', change: () => client.kv.put('in/c', '3'), runs: 2 },
    { name: 'creates a key that was read as missing', change: () => client.kv.put('none', '3'), runs: 2 },
    { name: 'changes a key that was not read', change: () => client.kv.put('out', 'x'), runs: 1 },
    { name: 'changes a key that is only written', change: () => client.kv.put('result', 'x'), runs: 1 },
  ];
test.each(MEANWHILE)('when another client $name, the function runs $runs times', async ({ change, runs }) => {
  for (const [key, value] of [
    ['in/a', '1'],
    ['in/b', '2'],
    ['out', '0'],
  ] as const) {
    await world.until(client.kv.put(key, value));
  }
  const other = await world.client();
  let count = 0;
  const done = other.kv.stm(async (t) => {
    count++;
    const sum = (await t.range({ prefix: 'in/' })).length;
    await t.get('in/a');
    await t.get('none');
    if (count === 1) await change();
    t.put('result', String(sum));
    return sum;
  });
  const sum = await world.until(done);
  expect([count, (await world.until(client.kv.get('result')))?.text()]).toEqual([runs, String(sum)]);
});

describe('a run', () => {
  test('sees what it has written itself, and others do not before it is committed', async () => {
    await world.until(client.kv.put('k/1', 'old'));
    await world.until(client.kv.put('k/2', 'gone'));
    await world.until(
      client.kv.stm(async (t) => {
        t.put('k/1', 'new');
        t.put('k/3', 'more');
        t.delete('k/2');
        expect([(await t.get('k/1'))?.text(), await t.get('k/2')]).toEqual(['new', undefined]);
        const seen = await t.range({ prefix: 'k/' });
        expect(seen.map((pair) => pair.text())).toEqual(['new', 'more']);
        expect((await client.kv.get('k/1'))?.text()).toBe('old');
      }),
    );
    expect(await valuesOf('k/')).toEqual(['k/1=new', 'k/3=more']);
  });

  test('that throws writes nothing, is not repeated, and leaves its own error (ST3)', async () => {
    const thrown = new Error('no');
    let runs = 0;
    const failed = client.kv.stm(async (t) => {
      runs++;
      t.put('k', 'v');
      await t.get('other');
      throw thrown;
    });
    await expect(world.until(failed)).rejects.toBe(thrown);
    expect([runs, await world.until(client.kv.get('k'))]).toEqual([1, undefined]);
  });

  test('that only reads sends no transaction', async () => {
    await world.until(client.kv.put('k', 'v'));
    const before = world.backend.seen.length;
    expect(await world.until(client.kv.stm(async (t) => (await t.get('k'))?.text()))).toBe('v');
    expect(world.backend.seen.length).toBe(before);
  });

  test('whose revision is compacted meanwhile is repeated', async () => {
    await world.until(client.kv.put('k', '1'));
    let runs = 0;
    const done = client.kv.stm(async (t) => {
      runs++;
      await t.get('k');
      if (runs === 1) await client.kv.compact((await client.kv.put('k', '2')).revision);
      return (await t.get('other')) === undefined;
    });
    expect([await world.until(done), runs]).toEqual([true, 2]);
  });

  test('whose answer is lost ends as UNKNOWN_OUTCOME, and is not repeated', async () => {
    const unlucky = await world.client({ retry: { attempts: 1 }, requestTimeout: 500 });
    let runs = 0;
    world.backend.onApplied = (command) => {
      if (command.type === 'txn') world.sever();
    };
    const lost = unlucky.kv.stm((t) => {
      runs++;
      t.put('k', 'v');
    });
    expect([await world.until(codeOf(lost)), runs]).toEqual(['UNKNOWN_OUTCOME', 1]);
    expect(await valuesOf('k')).toEqual(['k=v']);
  });

  test('that has ended can write nothing any more', async () => {
    let late: Stm | undefined;
    await world.until(
      client.kv.stm((t) => {
        late = t;
      }),
    );
    expect(() => late?.put('k', 'v')).toThrow(/has ended/);
    expect(await world.until(codeOf(late?.get('k') ?? Promise.resolve()))).toBe('INVALID_ARGUMENT');
  });

  test('is fenced', async () => {
    const fenced = client.kv.stm((t) => t.put('k', 'v'), { fence: { name: 'l', version: 7 } });
    expect(await world.until(codeOf(fenced))).toBe('FENCED');
  });
});
