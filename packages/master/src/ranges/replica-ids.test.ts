import { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { type DrawIds, ReplicaIds } from './replica-ids.ts';

type Drawn = Parameters<DrawIds>[1];

/** Ids from 1 on, given when the test answers. */
function pool() {
  const waiting: { readonly count: number; readonly done: Drawn }[] = [];
  let next = 1;
  const draw: DrawIds = (count, done) => void waiting.push({ count, done });
  const ids = new ReplicaIds(draw, () => next);
  ids.termBegan(1);
  const answer = (): void => {
    for (const { count, done } of waiting.splice(0)) {
      next += count;
      done(undefined, next - count);
    }
  };
  /** A split gets ids. */
  const split = (count: number): void => {
    next += count;
  };
  return { ids, waiting, answer, split };
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

test('what is at hand is void once others got higher ids: a node takes them in their order only (RI2)', () => {
  const { ids, answer, split } = pool();
  ids.next();
  answer();
  expect(ids.next()).toBe(1);
  split(3);
  expect(ids.next()).toBeUndefined();
  answer();
  expect(ids.next()).toBe(20);
});

test('so it is when they got them while more were drawn', () => {
  const { ids, answer, split } = pool();
  ids.next();
  answer();
  for (let i = 0; i < 10; i++) ids.next(); // few are left: more are being drawn
  split(3);
  answer();
  expect(ids.next()).toBe(20);
});

test('a draw that fails is made again when an id is asked for', () => {
  const { ids, waiting, answer } = pool();
  ids.next();
  waiting.splice(0)[0]?.done(new ServiceError('NOT_LEADER', 'another leads'), undefined);
  expect(ids.next()).toBeUndefined();
  answer();
  expect(ids.next()).toBe(1);
});
