import { describe, expect, test } from 'vitest';
import type { NodeRoles } from '../../../../packages/cli/src/node/assemble.ts';
import { leftovers } from './leaks.ts';

interface Left {
  readonly host: Record<string, number>;
  readonly gateway: Record<string, number>;
  readonly range: Record<string, number>;
  readonly master: number;
  readonly leases: number;
  readonly ending: number;
  readonly references: number;
  readonly outcomes: number;
  /** The first bytes of rows in the engine. */
  readonly rows: readonly number[];
  readonly clientLinks: number;
}

const NOTHING: Left = {
  host: { reads: 0, snapshotsIn: 0, snapshotsOut: 0 },
  gateway: { calls: 0, watches: 0 },
  range: { proposals: 0, lockCalls: 0, watches: 0, leasesKept: 0, transactions: 0, transactionWaits: 0 },
  master: 0,
  leases: 0,
  ending: 0,
  references: 0,
  outcomes: 0,
  rows: [3, 4],
  clientLinks: 0,
};

/** What is found on a node at which this is left. */
function found(left: Partial<Left>): string {
  const { host, gateway, range, master, leases, ending, references, outcomes, rows, clientLinks } = {
    ...NOTHING,
    ...left,
  };
  const state = {
    leases: { size: leases, allEnding: () => Array.from({ length: ending }) },
    references: { size: references },
    outcomes: { count: outcomes },
  };
  const roles = {
    host: { inFlight: () => host },
    inFlight: () => gateway,
    master: { proposalsInFlight: master },
    store: { replicas: () => [{ rangeId: 2, state, inFlight: () => range }] },
    engine: {
      scanResident: ({ start, end }: { start: Buffer; end: Buffer }) =>
        rows.filter((space) => space >= (start[0] ?? 0) && space < (end[0] ?? 0)),
    },
  } as unknown as NodeRoles;
  return leftovers({ nodes: [{ id: 1, roles }], clientLinks });
}

describe('what is left when all clients have gone', () => {
  test('nothing, while keys stay', () => expect(found({})).toBe(''));

  const bad: readonly { readonly name: string; readonly left: Partial<Left>; readonly text: string }[] = [
    { name: 'a lease', left: { leases: 1 }, text: 'node 1: 1 leases of range 2' },
    {
      name: 'the row of a lease, or of what belonged to one',
      left: { rows: [1, 3] },
      text: 'node 1: 1 rows of leases',
    },
    { name: 'a lease that does not end', left: { ending: 1 }, text: 'node 1: 1 leases that end of range 2' },
    {
      name: 'a reference to a lease of another range',
      left: { references: 2 },
      text: 'node 1: 2 references to leases of range 2',
    },
    {
      name: 'a part of a transaction over several ranges',
      left: { range: { transactions: 1 } },
      text: 'node 1: 1 transactions of range 2',
    },
    { name: 'a lock, a waiter, a mark', left: { rows: [2, 2] }, text: 'node 1: 2 rows of locks' },
    { name: 'a lease whose time is kept', left: { range: { leasesKept: 3 } }, text: 'node 1: 3 leasesKept of range 2' },
    {
      name: 'a call of one who waits for a lock',
      left: { range: { lockCalls: 1 } },
      text: 'node 1: 1 lockCalls of range 2',
    },
    { name: 'a watch of a range', left: { range: { watches: 1 } }, text: 'node 1: 1 watches of range 2' },
    { name: 'a proposal', left: { range: { proposals: 2 } }, text: 'node 1: 2 proposals of range 2' },
    { name: 'a remembered outcome', left: { outcomes: 9 }, text: 'node 1: 9 outcomes of range 2' },
    { name: 'a call at a gateway', left: { gateway: { calls: 1 } }, text: 'node 1: 1 calls' },
    { name: 'a watch at a gateway', left: { gateway: { watches: 1 } }, text: 'node 1: 1 watches' },
    { name: 'the place of a snapshot', left: { host: { snapshotsIn: 1 } }, text: 'node 1: 1 snapshotsIn' },
    { name: 'a read that is not answered', left: { host: { reads: 1 } }, text: 'node 1: 1 reads' },
    { name: 'a proposal of the master', left: { master: 1 }, text: 'node 1: 1 proposals of the master' },
    { name: "a client's connection", left: { clientLinks: 2 }, text: '2 links of clients' },
  ];
  test.each(bad)('found: $name', ({ left, text }) => expect(found(left)).toBe(text));

  test('found: a node that does not run', () => {
    expect(leftovers({ nodes: [{ id: 3, roles: undefined }], clientLinks: 0 })).toBe('node 3 does not run');
  });
});
