import { describe, expect, test } from 'vitest';
import { ReadQueue } from './reads.ts';

describe('reads', () => {
  test('each call is answered once: applied, dropped, refused or cancelled', () => {
    const reads = new ReadQueue(10);
    const log: string[] = [];
    const add = (name: string) => reads.add((refused) => log.push(`${name}:${refused ?? 'ok'}`));
    const contexts: number[] = [];
    const round = () =>
      reads.startRound((context) => {
        contexts.push(context);
        return undefined;
      });
    add('a');
    add('b');
    round();
    add('c');
    round();
    round();
    expect(contexts).toEqual([1, 2]);
    reads.confirmed([
      { context: 1, index: 5 },
      { context: 9, index: 1 },
    ]);
    reads.applied(4);
    expect(log).toEqual([]);
    reads.applied(5);
    reads.dropped([2, 1]);
    add('d');
    reads.startRound(() => 'notLeader');
    add('e');
    round();
    reads.confirmed([{ context: 4, index: 9 }]);
    add('f');
    reads.dropAll();
    reads.applied(100);
    expect(log).toEqual(['a:ok', 'b:ok', 'c:notLeader', 'd:notLeader', 'e:notLeader', 'f:notLeader']);
  });
});
