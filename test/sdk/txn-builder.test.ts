import type { RemoraClient, TxnGetAnswer, TxnPutAnswer } from 'remora';
import { beforeEach, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

let world: World;
let client: RemoraClient;
beforeEach(async () => {
  world = new World();
  client = await world.client();
});

test('a transaction whose conditions hold is applied, and its results have the types of its operations', async () => {
  await world.until(client.kv.put('stock', 'free'));
  const sold = await world.until(
    client.kv
      .transaction()
      .if('stock', 'value', '=', 'free')
      .if('order', 'version', '=', 0)
      .put('stock', 'sold', { prevKv: true })
      .put('order', 'stock')
      .delete({ prefix: 'none/' })
      .else()
      .get('stock')
      .commit(),
  );
  if (!sold.succeeded) throw new Error('the conditions hold');
  const [first, second, third] = sold.results;
  const typed: TxnPutAnswer = first;
  expect([typed.prev?.text(), second.type, third.deleted]).toEqual(['free', 'put', 0]);
  expect((await world.until(client.kv.get('order')))?.text()).toBe('stock');
});

test('otherwise what follows `else` is applied', async () => {
  await world.until(client.kv.put('stock', 'sold'));
  const sold = await world.until(
    client.kv.transaction().if('stock', 'value', '=', 'free').put('stock', 'x').else().get('stock').commit(),
  );
  if (sold.succeeded) throw new Error('the condition does not hold');
  const [found]: [TxnGetAnswer] = sold.results;
  expect(found.kvs.map((pair) => pair.text())).toEqual(['sold']);
});

test('each step leaves the one before as it is, and may be committed several times', async () => {
  const base = client.kv.transaction().if('a', 'version', '=', 0);
  const [one, two] = [base.put('a', '1'), base.put('a', '2')];
  expect((await world.until(two.commit())).succeeded).toBe(true);
  expect((await world.until(one.commit())).succeeded).toBe(false);
  expect((await world.until(client.kv.get('a')))?.text()).toBe('2');
});

test.each(['createRevision', 'modRevision'] as const)(
  '%s is compared under the name that pairs have',
  async (target) => {
    const { revision } = await world.until(client.kv.put('k', 'v'));
    const outcome = await world.until(client.kv.transaction().if('k', target, '=', revision).put('k', 'w').commit());
    expect(outcome.succeeded).toBe(true);
    const sorted = await world.until(client.kv.range({ prefix: '' }, { sort: { by: target, order: 'descend' } }));
    expect(sorted.kvs.map((pair) => pair.text())).toEqual(['w']);
  },
);

test('a condition of the wrong kind is refused when the transaction is committed', async () => {
  const wrong = client.kv.transaction().if('k', 'modRevision', '=', 'text' as never);
  expect(await world.until(codeOf(wrong.put('k', 'v').commit()))).toBe('INVALID_ARGUMENT');
  expect(
    await world.until(
      codeOf(
        client.kv
          .transaction()
          .if(undefined as never)
          .put('k', 'v')
          .commit(),
      ),
    ),
  ).toBe('INVALID_ARGUMENT');
});

test('it is fenced by the options of its commit', async () => {
  const fenced = client.kv
    .transaction()
    .put('k', 'v')
    .commit({ fence: { name: 'l', version: 7 } });
  expect(await world.until(codeOf(fenced))).toBe('FENCED');
});
