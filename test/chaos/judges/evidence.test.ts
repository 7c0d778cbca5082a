import { expect, test } from 'vitest';
import type { Line } from '../journal/lines.ts';
import { type AuditedEvent, Evidence, type Operation } from './evidence.ts';

const begin = (id: number, r: number): Line => ({ e: 'begin', id, w: 'registers', r, t: id, q: { op: 'put' } });
const end = (id: number): Line => ({ e: 'end', id, t: 100 + id, how: 'done', a: { ok: true } });
const over = (r: number): Line => ({ e: 'over', r });

function open(...processes: readonly string[]) {
  const told: { operations: Operation[]; late: [number, readonly AuditedEvent[]][] } = { operations: [], late: [] };
  const evidence = new Evidence({
    operation: (operation) => told.operations.push(operation),
    late: (r, events) => told.late.push([r, events]),
    left: () => {},
  });
  for (const process of processes) evidence.opened(process);
  const takeAll = (process: string, ...lines: readonly Line[]): void => {
    for (const line of lines) evidence.take(process, line);
  };
  return { evidence, told, takeAll };
}

test('a round is over when every process is through with it', () => {
  const { evidence, takeAll } = open('a', 'b');
  takeAll('a', { e: 'start', r: 0 }, begin(1, 0), end(1), over(0));
  expect(evidence.overUpTo).toBe(-1);
  takeAll('b', { e: 'start', r: 0 }, begin(1, 0), end(1));
  expect(evidence.overUpTo).toBe(-1);
  takeAll('b', over(0));
  expect(evidence.overUpTo).toBe(0);
  const [round, ...others] = evidence.takeRounds(0);
  expect(others).toEqual([]);
  expect(round?.operations.map(({ process, how }) => ({ process, how }))).toEqual([
    { process: 'a', how: 'done' },
    { process: 'b', how: 'done' },
  ]);
});

test('a process that has been announced holds back all rounds until it says where it begins', () => {
  const { evidence, takeAll } = open('a');
  takeAll('a', { e: 'start', r: 0 }, begin(1, 0), end(1), begin(2, 1), end(2), over(0), over(1));
  evidence.opened('b');
  expect(evidence.overUpTo).toBe(-1);
  takeAll('b', { e: 'start', r: 1 });
  expect(evidence.overUpTo).toBe(0);
});

test('what a process had begun when it was killed has an unknown outcome, and its rounds wait for nothing', () => {
  const { evidence, told, takeAll } = open('a', 'b');
  takeAll('a', { e: 'start', r: 0 }, begin(1, 0), begin(2, 0), end(2));
  takeAll('b', { e: 'start', r: 0 }, over(0));
  evidence.ended('a');
  expect(told.operations).toMatchObject([
    { t0: 2, t1: 102, how: 'done' },
    { t0: 1, t1: null, how: 'unknown', code: 'PROCESS_GONE' },
  ]);
  expect(evidence.overUpTo).toBe(0);
});

test('changes of a round that was handed out are told at once', () => {
  const { evidence, told, takeAll } = open('a');
  takeAll('a', { e: 'start', r: 0 }, begin(1, 0), end(1), over(0));
  evidence.takeRounds(evidence.overUpTo);
  takeAll('a', { e: 'note', w: 'audit', r: 0, t: 5, n: { events: [[7, 'register/0/1', 'v']] } });
  expect(told.late).toEqual([[0, [{ t: 5, revision: 7, key: 'register/0/1', value: 'v' }]]]);
});
