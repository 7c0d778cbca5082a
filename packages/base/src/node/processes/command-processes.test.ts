import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import type { CommandIdentity } from '../../process-identity.ts';
import { nodeClock } from '../node-clock.ts';
import { endCommand, processesOf } from './command-processes.ts';
import type { ProcessRow } from './listing.ts';
import { identityOf, isGone } from './process-identity.ts';
import { type ProcessTable, rowsOfPs, systemProcessTable } from './process-table.ts';

interface Entry extends Partial<ProcessRow> {
  readonly pid: number;
  readonly start?: string;
  readonly variable?: string;
}

/** A machine with these processes. */
function tableOf(entries: readonly Entry[], change: Partial<ProcessTable> = {}): ProcessTable {
  const rows = entries.map(({ pid, parent = 1, group = pid, session }) => ({ pid, parent, group, session }));
  const entry = (wanted: number) => entries.find(({ pid }) => pid === wanted);
  return {
    ...{ host: 'h', boot: 'b', space: 's', pid: 2 },
    startOf: (pid) => entry(pid) && (entry(pid)?.start ?? '500'),
    list: () => rows,
    hasVariable: (pid, text) => entry(pid)?.variable === text,
    signal: (target) => (rows.some(({ pid, group }) => pid === target || group === -target) ? 'sent' : 'gone'),
    ...change,
  };
}

interface Case {
  readonly name: string;
  readonly entries: readonly Entry[];
  readonly change?: Partial<ProcessTable>;
  readonly found: readonly number[];
}

const own: CommandIdentity = {
  ...{ host: 'h', boot: 'b', space: 's', pid: 10, start: '500' },
  ...{ session: 10, mark: 'MARK=1' },
};
const shared: CommandIdentity = { ...own, session: 7 };

describe('the processes of a command in a session of its own', () => {
  const cases: readonly Case[] = [
    {
      name: 'are those of the session, in whatever group',
      entries: [
        { pid: 10, session: 10 },
        { pid: 11, session: 10, group: 10 },
        { pid: 12, session: 10 },
        { pid: 13, session: 7 },
      ],
      found: [10, 11, 12],
    },
    { name: 'are those that are left when the first one has ended', entries: [{ pid: 11, session: 10 }], found: [11] },
    {
      name: 'are none when its id is that of a later process',
      entries: [{ pid: 10, session: 10, start: '600' }],
      found: [],
    },
    { name: 'are not those that left the session', entries: [{ pid: 11, parent: 10, session: 11 }], found: [] },
    {
      name: 'are those of its group where the system tells no sessions',
      entries: [{ pid: 11, group: 10, session: undefined }],
      found: [11],
    },
    {
      name: 'are there while the group is, where the system lists nothing',
      entries: [{ pid: 11, group: 10 }],
      change: { list: () => undefined },
      found: [10],
    },
    {
      name: 'are none where the system lists nothing, and the group is gone',
      entries: [],
      change: { list: () => undefined },
      found: [],
    },
    {
      name: 'have the first one among them when it is hidden from the list',
      entries: [{ pid: 10 }],
      change: { list: () => [] },
      found: [10],
    },
  ];
  test.each(cases)('$name', ({ entries, change, found }) => {
    const table = tableOf(entries, change);
    expect(processesOf(own, table)).toEqual(found);
    expect(isGone(own, table)).toBe(found.length === 0);
  });
});

describe('the processes of a command that shares a session', () => {
  const cases: readonly Case[] = [
    {
      name: 'are its descendants in it, and no others',
      entries: [
        { pid: 8, session: 7 },
        { pid: 10, parent: 8, session: 7 },
        { pid: 11, parent: 10, session: 7 },
        { pid: 12, parent: 11, session: 7 },
        { pid: 13, parent: 8, session: 7 },
        { pid: 14, parent: 10, session: 14 },
      ],
      found: [10, 11, 12],
    },
    {
      name: 'are known by their environment when they have lost their parents',
      entries: [
        { pid: 11, session: 7, variable: 'MARK=1' },
        { pid: 12, session: 7, variable: 'MARK=2' },
      ],
      found: [11],
    },
    {
      name: 'are not the descendants of a later process of that id',
      entries: [
        { pid: 10, session: 7, start: '600' },
        { pid: 11, parent: 10, session: 7 },
      ],
      found: [],
    },
    {
      name: 'are the first one where the system lists nothing',
      entries: [{ pid: 10 }],
      change: { list: () => undefined },
      found: [10],
    },
  ];
  test.each(cases)('$name', ({ entries, change, found }) => {
    expect(processesOf(shared, tableOf(entries, change))).toEqual(found);
  });
});

test('a command is not gone while the system fails to tell', () => {
  const failing = tableOf([], {
    list: () => {
      throw new Error('EMFILE');
    },
  });
  expect(isGone(own, failing)).toBe(false);
});

test('in a shared session one is found that was started by one that ended before its environment was read (CP4)', () => {
  let looks = 0;
  const row = (pid: number) => ({ pid, parent: 1, group: pid, session: 7 });
  const table = tableOf([{ pid: 12, session: 7, variable: 'MARK=1' }], { list: () => [row(looks++ === 0 ? 11 : 12)] });
  expect(isGone(shared, table)).toBe(false);
  expect(looks).toBe(2);
});

test('in a shared session a command is not gone while others end too fast to tell whose they are (CP4)', () => {
  const table = tableOf([], { list: () => [{ pid: 11, parent: 1, group: 11, session: 7 }] });
  expect(isGone(shared, table)).toBe(false);
});

test('where the system tells no sessions, what ends while it is listed keeps no command from being gone', () => {
  const table = tableOf([], { list: () => [{ pid: 11, parent: 1, group: 11, session: undefined }] });
  expect(isGone(shared, table)).toBe(true);
});

test('signals are sent to what is found where no list can be whole (CP4)', async () => {
  const sent: unknown[] = [];
  const row = { pid: 10, parent: 1, group: 10, session: 10 };
  const killed = () => sent.includes('SIGKILL');
  const table = tableOf([{ pid: 10, session: 10 }], {
    startOf: () => (killed() ? undefined : '500'),
    list(extent) {
      if (killed()) return [];
      if (extent !== 'some') throw new Error('too fast');
      return [row];
    },
    signal(_, signal) {
      sent.push(signal);
      return 'sent';
    },
  });
  await endCommand(own, { table, clock: nodeClock(), graceMs: 1 });
  expect(sent).toEqual(['SIGTERM', 'SIGCONT', 'SIGKILL']);
});

test('lines of ps are read, but for processes that have ended', () => {
  const text = '    1     0     1 Ss  \n  200     1   200 Z\n  300   200   200 R+ \n\n';
  expect(rowsOfPs(text)).toEqual([
    { pid: 1, parent: 0, group: 1, session: undefined },
    { pid: 300, parent: 200, group: 200, session: undefined },
  ]);
});

describe('all processes of a command are ended', () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  const STUBBORN = `trap '' TERM; sh -c 'while :; do sleep 0.05; done' & echo on; while :; do sleep 0.05; done`;

  async function run(script: string, table: ProcessTable): Promise<CommandIdentity> {
    const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    children.push(child);
    await once(child.stdout, 'data');
    const pid = child.pid ?? 0;
    return { ...identityOf({ ...table, pid }), session: pid, mark: '' };
  }

  test('though they ignore SIGTERM', async () => {
    const table = systemProcessTable();
    const command = await run(STUBBORN, table);
    await endCommand(command, { table, clock: nodeClock(), graceMs: 50 });
    expect(processesOf(command, table)).toEqual([]);
  });

  test('as a group where the system lists none', async () => {
    const table: ProcessTable = { ...systemProcessTable(), list: () => undefined, startOf: () => '' };
    // Alone, as it depends on others when its descendants are waited for.
    const command = await run(`trap '' TERM; echo on; while :; do :; done`, table);
    await endCommand(command, { table, clock: nodeClock(), graceMs: 50 });
    expect(processesOf(command, systemProcessTable())).toEqual([]);
  });

  test('by SIGTERM alone when they heed it, also when they are stopped', async () => {
    const table = systemProcessTable();
    const sent: unknown[] = [];
    const seen: ProcessTable = {
      ...table,
      signal(target, signal) {
        sent.push(signal);
        return table.signal(target, signal);
      },
    };
    const command = await run('echo on; while :; do sleep 0.05; done', table);
    process.kill(-command.pid, 'SIGSTOP');
    await endCommand(command, { table: seen, clock: nodeClock(), graceMs: 60_000 });
    expect(new Set(sent)).toEqual(new Set(['SIGTERM', 'SIGCONT']));
  });

  test('what may not be sent signals is waited for, and told once', async () => {
    let looks = 0;
    const table = tableOf([{ pid: 10, session: 10 }], {
      list: () => (looks++ < 6 ? [{ pid: 10, parent: 1, group: 10, session: 10 }] : []),
      startOf: () => (looks < 6 ? '500' : undefined),
      signal: () => 'refused',
    });
    let told = 0;
    await endCommand(own, { table, clock: nodeClock(), graceMs: 1, onRefused: () => told++ });
    expect([told, looks > 5]).toEqual([1, true]);
  });
});
