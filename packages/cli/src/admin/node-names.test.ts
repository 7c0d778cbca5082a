import type { admin } from '@remora/protocol/remora';
import { describe, expect, test } from 'vitest';
import { NodeNames } from './node-names.ts';

/** What of a node its name is found by. */
function node(id: number, name: string, duty = 'serving'): admin.Node {
  return { id, name, duty } as admin.Node;
}

const NAMES = new NodeNames([node(1, 'n1'), node(3, 'n3', 'removed'), node(2000, 'n3'), node(2001, 'n4', 'removed')]);

describe('a node', () => {
  const rows = [
    { name: 'is found by its name', text: 'n1', expect: 1 },
    { name: 'is found by its id', text: '1', expect: 1 },
    {
      name: 'that joined again under the name of one that was removed is the one that is meant',
      text: 'n3',
      expect: 2000,
    },
    { name: 'that was removed is found by its id', text: '3', expect: 3 },
    { name: 'that was removed is found by its name while nobody else has it', text: 'n4', expect: 2001 },
  ];
  test.each(rows)('$name', ({ text, expect: id }) => {
    expect(NAMES.find(text).id).toBe(id);
  });

  test('that is not there is refused with those that are', () => {
    expect(() => NAMES.find('n2')).toThrow('there is no node n2; there are n1 (1), n3 (3)');
  });

  test('whose name is the id of another one is none of both: what is meant may be removed for good', () => {
    const names = new NodeNames([
      node(1, '1'),
      node(2, 'n2'),
      node(1001, '2'),
      node(1002, '3'),
      node(3, 'n3', 'removed'),
    ]);
    expect(() => names.find('2')).toThrow('2 is the id of n2 and the name of node 1001: say n2 or 1001');
    expect(() => names.find('3')).toThrow('3 is the id of n3 and the name of node 1002: say n3 or 1002');
    expect([names.find('1').id, names.find('n2').id, names.find('1001').id]).toEqual([1, 2, 1001]);
  });
});
