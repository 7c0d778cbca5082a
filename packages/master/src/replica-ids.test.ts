import { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { type DrawIds, ReplicaIds } from './replica-ids.ts';

type Drawn = Parameters<DrawIds>[1];

/** Ids from 1 on, given when the test answers. */
function pool() {
  const waiting: { readonly count: number; readonly done: Drawn }[] = [];
  const ids = new ReplicaIds((count, done) => void waiting.push({ count, done }));
  ids.termBegan(1);
  let next = 1;
  const answer = (): void => {
    for (const { count, done } of waiting.splice(0)) {
      done(undefined, next);
      next += count;
    }
  };
  return { ids, waiting, answer };
}

test('ids are drawn ahead, and each is handed out once', () => {
  const { ids, waiting, answer } = pool();
  expect([ids.next(), ids.next()]).toEqual([undefined, undefined]);
  expect(waiting).toHaveLength(1); // one draw at a time
  answer();
  const given: (number | undefined)[] = [];
  for (let i = 0; i < 100; i++) {
    given.push(ids.next());
    answer();
  }
  expect(given).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
});

test('what was drawn in another term is not handed out, and an answer that comes late neither', () => {
  const { ids, waiting, answer } = pool();
  ids.next();
  const [late] = waiting.splice(0);
  ids.termBegan(2);
  late?.done(undefined, 500);
  expect(ids.next()).toBeUndefined();
  answer();
  expect(ids.next()).toBe(1);
  ids.termBegan(3);
  expect(ids.next()).toBeUndefined();
});

test('a draw that fails is made again when an id is asked for', () => {
  const { ids, waiting, answer } = pool();
  ids.next();
  waiting.splice(0)[0]?.done(new ServiceError('NOT_LEADER', 'another leads'), undefined);
  expect(ids.next()).toBeUndefined();
  answer();
  expect(ids.next()).toBe(1);
});
