import { expect, test } from 'vitest';
import { listProcesses, type ProcessLook } from './listing.ts';

/**
 * A resting process, and a chain: where `moves` says so, before a reading or a look, its process starts the next and
 * ends.
 */
function chain(moves: readonly boolean[]): ProcessLook {
  let living = 100;
  let step = 0;
  const move = () => {
    if (moves[step++] === true) living++;
  };
  return {
    ids() {
      move();
      return ['50', String(living)];
    },
    look(id) {
      move();
      if (id !== '50' && id !== String(living)) return 'ended';
      return { pid: Number(id), parent: 1, group: 7, session: id === '50' ? 50 : 7 };
    },
  };
}

test('a chain of processes that start one another is found, whenever they do (LI1)', () => {
  const steps = 10;
  for (let bits = 0; bits < 2 ** steps; bits++) {
    const moves = Array.from({ length: steps }, (_, i) => ((bits >> i) & 1) === 1);
    const found = listProcesses(chain(moves)).filter(({ session }) => session === 7);
    expect(found.length, moves.join()).toBeGreaterThan(0);
  }
});

test('one that is missed by a reading as ids wrapped around is found by the next (LI2)', () => {
  let reads = 0;
  const row = (pid: number) => ({ pid, parent: 1, group: pid, session: pid });
  const found = listProcesses({ ids: () => (reads++ === 0 ? ['50'] : ['3', '50']), look: (id) => row(Number(id)) });
  expect(found.map(({ pid }) => pid)).toEqual([50, 3]);
});

test('processes that have ended, or are hidden, do not keep a listing from its end', () => {
  let reads = 0;
  const look: ProcessLook = {
    ids() {
      reads++;
      return ['1', '2', '3'];
    },
    look: (id) => (id === '1' ? 'ended' : id === '2' ? 'hidden' : { pid: 3, parent: 1, group: 3, session: 3 }),
  };
  expect([listProcesses(look).map(({ pid }) => pid), reads]).toEqual([[3], 2]);
});

test('a listing that cannot be whole fails, and some are told all the same', () => {
  let id = 0;
  const look: ProcessLook = {
    ids: () => ['0', String(++id)],
    look: (one) => (one === '0' ? { pid: 0, parent: 1, group: 7, session: 7 } : 'ended'),
  };
  expect(() => listProcesses(look)).toThrow('too fast');
  expect(listProcesses(look, 'some')).toHaveLength(1);
});
