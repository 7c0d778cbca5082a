import { expect, test } from 'vitest';
import type { Backend } from '../backend.ts';
import { Headers } from './headers.ts';

function headers(): Headers {
  const view = { clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 };
  return new Headers({ nodeId: 3, view: () => view } as unknown as Backend);
}

test('the term is never 0, and never falls', () => {
  const made = headers();
  const terms = [0, 4, 0, 2, 5].map((term) => made.make(7, term).raftTerm);
  expect(terms).toEqual([1, 4, 4, 4, 5]);
  expect(made.latest({ newest: 9 })).toMatchObject({ memberId: 3, revision: 9, raftTerm: 5 });
});
