import type { AppliedCommand } from '@remora/dataserver';
import { describe, expect, test } from 'vitest';
import { AppliedCommands } from './applied-commands.ts';

const OK = (revision: number): AppliedCommand['outcome'] => ({ ok: true, revision, result: { type: 'noop' } });
const REFUSED: AppliedCommand['outcome'] = { ok: false, revision: 4, code: 'DEADLINE_EXCEEDED', message: '' };

/** A put that took revision 4 to 5. */
const PUT: AppliedCommand = {
  rangeId: 2,
  index: 7,
  place: 0,
  requestId: 'a',
  command: { type: 'noop' },
  how: 'executed',
  revisionBefore: 4,
  revision: 5,
  outcome: OK(5),
};
const ROWS = 99;
/** The same request once more. */
const AGAIN: AppliedCommand = { ...PUT, index: 9, how: 'remembered', revisionBefore: 5, revision: 5 };
const OTHER: AppliedCommand = { ...PUT, index: 8, requestId: 'b', revisionBefore: 5, revision: 6, outcome: OK(6) };

type Step = readonly [node: number, command: AppliedCommand, digest: number];

function run(steps: readonly Step[]): void {
  const applied = new AppliedCommands();
  for (const [node, command, digest] of steps) applied.applied(node, command, digest);
}

/** Of one transaction over two ranges. */
const DECIDE: AppliedCommand = {
  ...{ rangeId: 2, index: 7, place: 0, requestId: 't/d', how: 'executed', revisionBefore: 4, revision: 8 },
  command: {
    ...{ type: 'txnDecide', txnId: 't', primaryKey: Buffer.from('k'), requestId: 'a' },
    decision: { type: 'commit', revision: 8, branches: [0], others: [] },
  },
  outcome: {
    ok: true,
    revision: 8,
    result: {
      type: 'txnDecide',
      outcome: { state: 'committed', commit: { type: 'commit', revision: 8, branches: [0] } },
      results: [],
    },
  },
};
const resolve = (txnId: string, revision: number): AppliedCommand => ({
  ...{ ...DECIDE, rangeId: 3, requestId: '', revision },
  command: {
    ...{ type: 'txnResolve', txnId, part: 1, requestId: 'a', span: { start: Buffer.alloc(0), end: Buffer.alloc(0) } },
    resolution: { type: 'commit', revision, branches: [0] },
  },
  outcome: { ok: true, revision, result: { type: 'txnResolve', results: [] } },
});
const ABORT: AppliedCommand = {
  ...{ ...resolve('t', 4), revisionBefore: 4, index: 8 },
  command: {
    ...{
      type: 'txnResolve',
      txnId: 't',
      part: 1,
      requestId: 'a',
      span: { start: Buffer.alloc(0), end: Buffer.alloc(0) },
    },
    resolution: { type: 'abort' },
  },
};
/** It comes behind the abort of its transaction. */
const PREPARED_LATE: AppliedCommand = {
  ...{ rangeId: 3, index: 9, place: 0, requestId: 't/1', how: 'remembered', revisionBefore: 4, revision: 4 },
  command: {
    ...{ type: 'txnPrepare', txnId: 't', part: 1, requestId: 'a', primaryKey: Buffer.from('k') },
    ...{ expiresMs: 1_000, compares: [], ops: [] },
  },
  outcome: { ok: true, revision: 4, result: { type: 'txnPrepare', answer: 'aborted' } },
};
/** The decision to abort, which comes before the first part is prepared. */
const ABORT_FIRST: AppliedCommand = {
  ...{ ...DECIDE, index: 8, requestId: 'u/d', revision: 4 },
  command: {
    ...{ type: 'txnDecide', txnId: 't', primaryKey: Buffer.from('k'), requestId: 'a' },
    decision: { type: 'abort' },
  },
  outcome: { ok: true, revision: 4, result: { type: 'txnDecide', outcome: { state: 'aborted' }, results: undefined } },
};
const COMPACT: AppliedCommand = { ...PUT, command: { type: 'compact', revision: 4 }, revision: 4, outcome: OK(4) };

const FIRST: Step = [1, PUT, ROWS];

describe('what apply makes of commands', () => {
  test('a good run: every replica applies the same, again after a restart, and a retry is answered from memory', () => {
    const steps: Step[] = [FIRST, [1, OTHER, 1], [2, PUT, ROWS], [1, AGAIN, 0], [1, PUT, ROWS], [2, OTHER, 1]];
    expect(() => run(steps)).not.toThrow();
  });

  test('a good run over several ranges: after a split both remember, a transaction has parts, all are compacted', () => {
    const remembered: Step[] = [FIRST, [1, { ...AGAIN, rangeId: 3 }, 0]];
    const committed: Step[] = [
      [1, DECIDE, 1],
      [1, resolve('t', 8), 1],
    ];
    const compacted: Step[] = [
      [1, COMPACT, 0],
      [1, { ...COMPACT, rangeId: 3 }, 0],
    ];
    const aborted: Step[] = [
      [1, ABORT, 0],
      [1, PREPARED_LATE, 0],
    ];
    const first = { ...PREPARED_LATE, requestId: 't/0' };
    const neverBegun: Step[] = [
      [1, ABORT_FIRST, 0],
      [1, first, 0],
    ];
    const good = [remembered, committed, compacted, aborted, neverBegun];
    for (const steps of good) expect(() => run(steps)).not.toThrow();
  });

  const bad: readonly { readonly name: string; readonly steps: readonly Step[]; readonly found: string }[] = [
    {
      name: 'a request is executed a second time',
      steps: [FIRST, [1, { ...OTHER, requestId: 'a' }, 1]],
      found:
        'applied once: request a was executed as command 0 of entry 8 of range 2, and before as command 0 of entry 7',
    },
    {
      name: 'a part is told that its transaction is aborted, which it is not',
      steps: [[1, PREPARED_LATE, 0]],
      found: 'applied once: command 0 of entry 9 of range 3 was answered as request t/1 was before',
    },
    {
      name: 'it is, by another range',
      steps: [FIRST, [1, { ...OTHER, requestId: 'a', rangeId: 3 }, 1]],
      found: 'applied once: request a was executed as command 0 of entry 8 of range 3, and before',
    },
    {
      name: 'it is, as a transaction over several ranges',
      steps: [FIRST, [1, resolve('t', 8), 1]],
      found: 'applied once: request a was executed as command 0 of entry 7 of range 2, and committed as t',
    },
    {
      name: 'two attempts at one transaction commit',
      steps: [
        [1, DECIDE, 1],
        [1, resolve('u', 8), 1],
      ],
      found: 'applied once: request a was committed as u at 8',
    },
    {
      name: 'parts of a transaction commit at different revisions',
      steps: [
        [1, DECIDE, 1],
        [1, resolve('t', 9), 1],
      ],
      found: 'applied once: request a was committed as t at 9',
    },
    {
      name: 'a retry is answered with something else',
      steps: [FIRST, [1, { ...AGAIN, outcome: OK(4) }, 0]],
      found: 'applied once',
    },
    {
      name: 'a request is answered from memory that never was executed',
      steps: [[1, AGAIN, 0]],
      found: 'it never was executed',
    },
    {
      name: 'one replica remembers the request, another executes it again',
      steps: [FIRST, [1, AGAIN, 0], [2, { ...OTHER, index: 9, requestId: 'a' }, ROWS]],
      found: 'applied alike',
    },
    { name: 'a replica writes other rows', steps: [FIRST, [2, PUT, ROWS + 1]], found: 'applied alike' },
    {
      name: 'a replica is at another revision',
      steps: [FIRST, [2, { ...PUT, revisionBefore: 3, revision: 4 }, ROWS]],
      found: 'applied alike',
    },
    {
      name: 'a command that is refused writes rows',
      steps: [[1, { ...PUT, how: 'refused', revision: 4, outcome: REFUSED }, ROWS]],
      found: 'refused writes have no effect',
    },
    {
      name: 'a command that fails takes a revision',
      steps: [[1, { ...PUT, outcome: REFUSED }, 0]],
      found: 'refused writes have no effect',
    },
    {
      name: 'a retry that is answered from memory writes again',
      steps: [FIRST, [1, AGAIN, ROWS]],
      found: 'refused writes have no effect',
    },
    {
      name: 'a revision is given twice',
      steps: [FIRST, [1, { ...OTHER, revisionBefore: 4, revision: 5, outcome: OK(5) }, 1]],
      found: 'revisions are unique: revision 5 names command 0 of entry 8 of range 2 and command 0 of entry 7',
    },
    {
      name: 'a revision falls',
      steps: [FIRST, [1, { ...OTHER, revisionBefore: 5, revision: 3 }, 1]],
      found: 'revisions grow',
    },
  ];
  test.each(bad)('found: $name', ({ steps, found }) => {
    expect(() => run(steps)).toThrow(found);
  });
});

test('a replica that begins with a checkpoint may answer from outcomes of before; its own are still compared', () => {
  const applied = new AppliedCommands(undefined, false);
  expect(() => applied.applied(1, AGAIN, 0)).not.toThrow();
  applied.applied(1, { ...OTHER, requestId: 'c' }, ROWS);
  expect(() => applied.applied(1, { ...AGAIN, index: 12, requestId: 'c', outcome: OK(3) }, 0)).toThrow('applied once');
});
