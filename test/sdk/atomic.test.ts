import { SeededRandom } from '@remora/base';
import { type Increment, KvPair, type RemoraClient } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

const REQUEST = { timeoutMs: 1_000, principal: undefined };

let world: World;
let client: RemoraClient;
beforeEach(async () => {
  world = new World();
  client = await world.client();
});

async function textOf(key: string): Promise<string | undefined> {
  return (await world.until(client.kv.get(key)))?.text();
}

describe('increment', () => {
  test.each([
    { name: 'a key that does not exist counts as 0', before: undefined, by: undefined, after: 1 },
    { name: 'one is added by default', before: '41', by: undefined, after: 42 },
    { name: 'any whole number is added', before: '7', by: 35, after: 42 },
    { name: 'a negative one is subtracted', before: '3', by: -5, after: -2 },
    { name: 'nothing is added to 0', before: undefined, by: 0, after: 0 },
  ])('$name', async ({ before, by, after }) => {
    if (before !== undefined) await world.until(client.kv.put('n', before));
    const { value, revision, repeated } = await world.until(client.kv.increment('n', { by }));
    expect([value, repeated]).toEqual([after, false]);
    const pair = await world.until(client.kv.get('n'));
    expect([pair?.text(), pair?.modRevision]).toEqual([String(after), revision]);
  });

  test.each([
    { what: 'text', value: 'many' },
    { what: 'a fraction', value: '1.5' },
    { what: 'an empty value', value: '' },
    { what: 'a number that is not safe', value: '9007199254740993' },
  ])('of $what is refused, and changes nothing', async ({ value }) => {
    await world.until(client.kv.put('n', value));
    expect(await world.until(codeOf(client.kv.increment('n')))).toBe('INVALID_ARGUMENT');
    expect(await textOf('n')).toBe(value);
  });

  test('beyond the safe integers is refused, and changes nothing', async () => {
    await world.until(client.kv.put('n', String(Number.MAX_SAFE_INTEGER)));
    expect(await world.until(codeOf(client.kv.increment('n')))).toBe('INVALID_ARGUMENT');
    expect(await textOf('n')).toBe(String(Number.MAX_SAFE_INTEGER));
  });

  test('a counter keeps its lease, and a new one gets that of the call', async () => {
    const { id } = await world.until(client.lease.grant('1h'));
    const granted = { type: 'leaseGrant', id, ttlMs: 3_600_000, attributes: {} } as const;
    world.backend.keys.command(granted, REQUEST, () => {}); // Sessions and leases of keys are apart here.
    await world.run(20);
    await world.until(client.kv.increment('n', { lease: id }));
    await world.until(client.kv.increment('n'));
    const pair = await world.until(client.kv.get('n'));
    expect([pair?.text(), pair?.lease]).toEqual(['2', id]);
  });

  test('increments at once are all applied, and each has a value of its own (AC1)', async () => {
    const clients = await Promise.all([1, 2, 3, 4].map(() => world.client()));
    const calls = clients.flatMap((each) =>
      Array.from({ length: 10 }, () => each.kv.increment('n', { timeout: '60s' })),
    );
    const values = (await world.until(Promise.all(calls))).map(({ value }) => value);
    expect(values.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  });

  test('that others hinder until its time is over ends as not done, and nothing is added', async () => {
    const { keys } = world.backend;
    const command = keys.command.bind(keys);
    keys.command = (asked, options, done) => {
      if (asked.type === 'txn') command(otherPut, options, () => {});
      return command(asked, options, done);
    };
    const failed = await world.until(client.kv.increment('n', { timeout: '1s' }).catch((error) => error));
    expect(failed).toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      message: expect.stringContaining('nothing was written'),
    });
    expect(await textOf('n')).toBe('100');
  });
});

const flags = { prevKv: false, ignoreValue: false, ignoreLease: false };
const [key, value] = [Buffer.from('n'), Buffer.from('100')];
const otherPut = { type: 'kv', op: { type: 'put', key, value, lease: 0n, ...flags } } as const;

/** Increments of one client whose answers are lost now and then. */
async function misfortunes(seed: number, once: boolean) {
  const random = new SeededRandom(seed);
  const unlucky = await world.client({ retry: { attempts: 1 }, requestTimeout: 500 });
  const before = world.backend.onApplied;
  world.backend.onApplied = (command) => {
    if (command.type === 'txn' && random.int(3) === 0) world.sever();
  };
  const answers: Increment[] = [];
  const counts = { unknown: 0, failed: 0 };
  for (let i = 0; i < 20; i++) {
    for (let tries = 0; tries < 40; tries++) {
      const options = once ? { once: `once/${seed}/${i}` } : {};
      const answer = await world.until(unlucky.kv.increment('n', options).catch((error) => error));
      if (!(answer instanceof Error)) {
        answers.push(answer);
        break;
      }
      if ((answer as { code?: string }).code === 'UNKNOWN_OUTCOME') counts.unknown++;
      else counts.failed++;
      if (!once) break;
    }
  }
  world.backend.onApplied = before;
  return { answers, ...counts };
}

describe.each([1, 2, 3, 4, 5])('when answers are lost, with seed %i', (seed) => {
  test('no increment that was applied is reported as failed (AC2)', async () => {
    const { answers, unknown } = await misfortunes(seed, false);
    const sum = Number(await textOf('n'));
    expect(unknown).toBeGreaterThan(0);
    expect(sum).toBeGreaterThanOrEqual(answers.length);
    expect(sum).toBeLessThanOrEqual(answers.length + unknown);
  });

  test('an increment with `once` that is repeated until it is answered is applied once (AC3)', async () => {
    const { answers, unknown } = await misfortunes(seed, true);
    expect(unknown).toBeGreaterThan(0);
    expect(answers.some(({ repeated }) => repeated)).toBe(true);
    expect(answers.map(({ value: one }) => one)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(await textOf('n')).toBe('20');
  });
});

test('calls of several clients with one `once` add once altogether, and all return that sum', async () => {
  const clients = await Promise.all([1, 2, 3].map(() => world.client()));
  const calls = clients.map((each) => each.kv.increment('n', { by: 5, once: 'done/order-42' }));
  const answers = await world.until(Promise.all(calls));
  expect(answers.map(({ value: one }) => one)).toEqual([5, 5, 5]);
  expect(answers.filter(({ repeated }) => !repeated)).toHaveLength(1);
});

test.each([{ once: 'n' }, { onceLease: 5n }])('%s makes no sense for an increment of n', async (options) => {
  expect(await world.until(codeOf(client.kv.increment('n', options)))).toBe('INVALID_ARGUMENT');
});

test('a key is created once, and whoever comes later gets what is there', async () => {
  const first = await world.until(client.kv.putIfAbsent('k', 'first'));
  const second = await world.until(client.kv.putIfAbsent('k', 'second'));
  expect([first.created, second.created]).toEqual([true, false]);
  expect(!second.created && second.existing.text()).toBe('first');
});

describe('compareAndSet', () => {
  test.each([
    { name: 'the value that is there', expected: 'v', swapped: true },
    { name: 'another value', expected: 'w', swapped: false },
    { name: 'no key', expected: undefined, swapped: false },
  ])('of a key, expecting $name: $swapped', async ({ expected, swapped }) => {
    await world.until(client.kv.put('k', 'v'));
    const answer = await world.until(client.kv.compareAndSet('k', expected, 'new'));
    expect(answer.swapped).toBe(swapped);
    expect(!answer.swapped && answer.current?.text()).toBe(swapped ? false : 'v');
    expect(await textOf('k')).toBe(swapped ? 'new' : 'v');
  });

  test('expecting a pair holds until the key is put again, even with the same value', async () => {
    await world.until(client.kv.put('k', 'v'));
    const pair = await world.until(client.kv.get('k'));
    await world.until(client.kv.put('k', 'v'));
    expect(await world.until(client.kv.compareAndSet('k', pair, 'new'))).toMatchObject({ swapped: false });
    const now = await world.until(client.kv.get('k'));
    expect(await world.until(client.kv.compareAndSet('k', now, 'new'))).toMatchObject({ swapped: true });
  });

  test('expecting a pair of another key is refused', async () => {
    const other = new KvPair({ key, value, createRevision: 1, modRevision: 1, version: 1, lease: 0n });
    expect(await world.until(codeOf(client.kv.compareAndSet('k', other, 'new')))).toBe('INVALID_ARGUMENT');
  });
});

test.each<{ name: string; call: (fence: { name: string; version: number }) => Promise<unknown> }>([
  { name: 'increment', call: (fence) => client.kv.increment('n', { fence }) },
  { name: 'putIfAbsent', call: (fence) => client.kv.putIfAbsent('n', '1', { fence }) },
  { name: 'compareAndSet', call: (fence) => client.kv.compareAndSet('n', undefined, '1', { fence }) },
])('$name is refused as FENCED once the lock of its fence is lost', async ({ call }) => {
  expect(await world.until(codeOf(call({ name: 'l', version: 7 })))).toBe('FENCED');
  expect(await textOf('n')).toBeUndefined();
});
