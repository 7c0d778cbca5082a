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
});
