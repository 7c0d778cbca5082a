import type { AppliedCommand } from '@remora/dataserver';
import type { Command, Query } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { Answers } from './answers.ts';
import { AppliedCommands } from './applied-commands.ts';

const NOOP: Command = { type: 'noop' };
const READ: Query = { type: 'leases' };
const STALE: Query = { type: 'status' };
const ACQUIRE: Command = {
  type: 'lock',
  command: {
    type: 'acquire',
    lock: { namespace: '', name: Buffer.from('l') },
    owner: { session: { lease: 1n, incarnation: 1 }, token: 't' },
    wait: true,
    waitUntilMs: 0,
    deadlineMs: 0,
    depthMax: 1,
    data: Buffer.alloc(0),
  },
};

interface Bed {
  readonly answers: Answers;
  /** The nth command takes revision n to n + 1. */
  execute(requestId: string, revision: number, changes?: boolean): void;
}

/** The first thing that `work` shows to be broken; empty when nothing is. */
function found(work: (bed: Bed) => void): string {
  const failures: unknown[] = [];
  const applied = new AppliedCommands();
  const answers = new Answers(applied, { oneRange: true, fail: (error) => failures.push(error) });
  let index = 0;
  const execute: Bed['execute'] = (requestId, revision, changes = true) => {
    const command: AppliedCommand = {
      rangeId: 2,
      index: ++index,
      place: 0,
      requestId,
      command: NOOP,
      how: 'executed',
      revisionBefore: changes ? revision - 1 : revision,
      revision,
      outcome: { ok: true, revision, result: { type: 'noop' } },
    };
    applied.applied(1, command, changes ? 1 : 0);
  };
  work({ answers, execute });
  return failures.map(String).join('\n');
}

describe('what gateways answer', () => {
  test('a good run: one after another, side by side, by way of two gateways, and stale reads that say so', () => {
    const text = found(({ answers, execute }) => {
      const [a, b] = [answers.command(NOOP, 'a'), answers.command(NOOP, 'b')];
      execute('a', 2);
      execute('b', 3);
      b(3);
      a(2); // begun before b was answered
      const c = answers.command(NOOP, 'c');
      execute('c', 4);
      const [read, again] = [answers.query(READ), answers.command(NOOP, 'c')];
      read(4);
      again(4); // c began before
      c(4);
      const compare = answers.command(NOOP, 'd');
      execute('d', 4, false);
      compare(4);
      const waits = answers.command(ACQUIRE, 'e');
      execute('e', 5);
      waits(9);
      answers.query(STALE)(1);
    });
    expect(text).toBe('');
  });

  test('a good run: refusals of what failed, of what is asked for again, of who waited too long; and what is unknown', () => {
    const text = found(({ answers, execute }) => {
      for (const id of ['never', 'failed', 'unknown', 'again', 'twice']) answers.command(NOOP, id);
      answers.refused(NOOP, 'never', 'DEADLINE_EXCEEDED');
      execute('failed', 1, false);
      answers.refused(NOOP, 'failed', 'LEASE_NOT_FOUND');
      answers.refused(NOOP, 'unknown', 'UNKNOWN_OUTCOME');
      execute('unknown', 2);
      answers.refused(NOOP, 'again', 'DEADLINE_EXCEEDED');
      answers.command(NOOP, 'again');
      execute('again', 3);
      answers.command(NOOP, 'twice');
      execute('twice', 4);
      answers.refused(NOOP, 'twice', 'DEADLINE_EXCEEDED'); // by the gateway that it reached second
      answers.command(ACQUIRE, 'waits');
      execute('waits', 5);
      answers.refused(ACQUIRE, 'waits', 'LOCK_TIMEOUT');
      answers.finish();
    });
    expect(text).toBe('');
  });

  const bad: readonly { readonly name: string; readonly work: (bed: Bed) => void; readonly text: string }[] = [
    {
      name: 'a write has a revision below one that was acknowledged before it began',
      work: ({ answers, execute }) => {
        const a = answers.command(NOOP, 'a');
        execute('b', 2);
        execute('a', 3);
        a(3);
        answers.command(NOOP, 'b')(2);
      },
      text: 'request b (noop) was answered with revision 2, and 3 had been shown before it began',
    },
    {
      name: 'a write is acknowledged with the revision of one before it',
      work: ({ answers, execute }) => {
        const a = answers.command(NOOP, 'a');
        execute('a', 2);
        a(2);
        const b = answers.command(NOOP, 'b');
        execute('b', 3);
        b(2);
      },
      text: 'revisions in real-time order',
    },
    {
      name: 'a read is older than what had been shown',
      work: ({ answers, execute }) => {
        const a = answers.command(NOOP, 'a');
        execute('a', 2);
        a(2);
        answers.query(READ)(1);
      },
      text: 'a query (leases) was answered from revision 1, and 2 had been shown',
    },
    {
      name: 'what a read has shown is not there for the next',
      work: ({ answers }) => {
        answers.query(READ)(5);
        answers.query(READ)(4);
      },
      text: 'revisions in real-time order',
    },
    {
      name: 'a write is acknowledged that no replica has executed',
      work: ({ answers }) => answers.command(NOOP, 'a')(2),
      text: 'answers are true: request a (noop) was acknowledged, and no replica has executed it',
    },
    {
      name: 'an answer names another revision than apply',
      work: ({ answers, execute }) => {
        const a = answers.command(NOOP, 'a');
        execute('a', 2);
        a(3);
      },
      text: 'answers are true',
    },
    {
      name: 'a write is refused that was executed',
      work: ({ answers, execute }) => {
        answers.command(NOOP, 'a');
        execute('a', 2);
        answers.refused(NOOP, 'a', 'NOT_LEADER');
      },
      text: 'answers are true: request a: noop was answered with NOT_LEADER, and it was executed at revision 2',
    },
    {
      name: 'a write is refused and executed later',
      work: ({ answers, execute }) => {
        answers.command(NOOP, 'a');
        answers.refused(NOOP, 'a', 'DEADLINE_EXCEEDED');
        execute('a', 2);
        answers.finish();
      },
      text: 'answers are true: request a: noop was answered with DEADLINE_EXCEEDED',
    },
    {
      name: 'a lock is granted before its acquire was applied',
      work: ({ answers, execute }) => {
        const a = answers.command(ACQUIRE, 'a');
        execute('a', 7);
        a(6);
      },
      text: 'answers are true',
    },
  ];
  test.each(bad)('found: $name', ({ work, text }) => {
    expect(found(work)).toContain(text);
  });
});
