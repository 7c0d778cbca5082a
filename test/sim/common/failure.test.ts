import { describe, expect, test } from 'vitest';
import { failureOf } from './failure.ts';
import { Trace } from './trace.ts';
import { Violation } from './violation.ts';

function trace(): Trace {
  let nowMs = 0;
  const filled = new Trace(() => nowMs++);
  filled.add('answered', 0, 0, 0, 0, '9.1 put "k" done');
  filled.add('append', 2, 7, 11);
  filled.add('append', 3, 7, 12);
  for (let i = 0; i < 10_000; i++) filled.add('frame', 1, 2, i);
  filled.add('role', 1, 8, 4, 0, 'leader');
  filled.add('append', 1, 8, 13);
  return filled;
}

const shown = (detail: string) => failureOf(trace(), new Violation('p', detail)).last.join('\n');
const first = (detail: string) => shown(detail).split('last of all')[0];

describe('a failure shows', () => {
  test('the property, and what was broken', () => {
    expect(failureOf(trace(), new Violation('p', 'detail'))).toMatchObject({ property: 'p', detail: 'p: detail' });
    expect(failureOf(trace(), new Error('unforeseen'))).toMatchObject({ property: 'nodes do not stop' });
  });

  test('the last events of the node and group that it names first, messages and all', () => {
    expect(first('group 8, replica 5 on node 1: lost')).toContain('append node 1 group 8 (13, 0)');
    expect(first('group 8, replica 5 on node 1: lost')).not.toContain('group 7');
    expect(first('range 8 differs')).toContain('role node 1 group 8');
  });

  test('what clients did with the keys that it names, however long ago', () => {
    expect(first('key "k" has no explanation')).toContain('9.1 put "k" done');
  });

  test('then the last events of all, without what nodes say to each other all the time', () => {
    const last = shown('something else').split('last of all')[1];
    expect(last).toContain('9.1 put "k" done');
    expect(last).toContain('role node 1 group 8');
    expect(last).not.toContain('append');
    expect(last).not.toContain('frame');
  });
});
