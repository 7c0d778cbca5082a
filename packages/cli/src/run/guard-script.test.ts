import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CommandIdentity, identityOf, processesOf, systemProcessTable } from '@remora/base';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { guardArguments } from './guard-script.ts';

const table = systemProcessTable();
const GONE = ['/nonexistent/node'];

let directory: string;
const started: CommandIdentity[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'remora-guard-'));
});
/** The death of one process may have ended the next one already. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

afterEach(() => {
  rmSync(directory, { recursive: true });
  for (const each of started.splice(0)) for (const pid of processesOf(each, table)) killIfThere(pid);
});

async function run(program: string, args: readonly string[]): Promise<CommandIdentity> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  await once(child.stdout, 'data');
  const pid = child.pid ?? 0;
  const command = { ...identityOf({ ...table, pid }), session: pid, mark: '' };
  started.push(command);
  return command;
}

/** The guard of it, once its pipe is closed and it has ended. */
async function guard(command: CommandIdentity, program: readonly string[]): Promise<void> {
  const child: ChildProcess = spawn('/bin/sh', guardArguments(command, program), { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin?.end();
  await once(child, 'exit');
}

/** Two process groups in one session, by the job control of bash. */
const GROUPS = [
  '-c',
  `set -m; trap '' TERM; sh -c 'while :; do sleep 0.1; done' & echo on; while :; do sleep 0.1; done`,
];

test('every process group of the session is killed when the program is gone (GS2)', async () => {
  const command = await run('bash', GROUPS);
  await guard(command, GONE);
  expect(processesOf(command, table)).toEqual([]);
});

test('those that its first process left behind are killed too (GS2)', async () => {
  const command = await run('bash', GROUPS);
  process.kill(command.pid, 'SIGKILL');
  await guard(command, GONE);
  expect(processesOf(command, table)).toEqual([]);
});

test('a program whose name has every kind of character is killed (GS2)', async () => {
  const path = join(directory, ') Z *\n1 (');
  copyFileSync('/bin/sh', path);
  const command = await run(path, ['-c', 'echo on; while :; do :; done']);
  await guard(command, GONE);
  expect(processesOf(command, table)).toEqual([]);
});

test.each([
  ['started at another time', '1'],
  ['is not known by its start', ''],
])('a process that %s is not killed (GS2)', async (_, start) => {
  const command = await run('bash', GROUPS);
  const before = processesOf(command, table);
  for (const session of [command.session, 1]) await guard({ ...command, start, session }, GONE);
  expect(processesOf(command, table)).toEqual(expect.arrayContaining([command.pid]));
  expect(before.length).toBeGreaterThan(1);
});

test('in a shared session the first process is killed, and no group (GS2)', async () => {
  const command = await run('bash', GROUPS);
  await guard({ ...command, session: 1 }, GONE);
  await expect.poll(() => processesOf(command, table)).not.toContain(command.pid);
  expect(processesOf(command, table)).not.toEqual([]);
});

test.each([
  ['is started again', 2, 3],
  ['is started six times at most', 100, 6],
])('a program that signals end %s (GS1)', async (_, deaths, starts) => {
  const command = await run('bash', GROUPS);
  const log = join(directory, 'starts');
  const program = `echo >>"$0"; [ $(wc -l <"$0") -gt ${deaths} ] || kill -TERM $$`;
  // As Node, it does not ignore what its parent does.
  const perl = `$SIG{TERM} = "DEFAULT"; exec @ARGV`;
  await guard(command, ['perl', '-e', perl, 'sh', '-c', program, log]);
  expect(readFileSync(log, 'utf8').length).toBe(starts);
  expect(processesOf(command, table).length === 0).toBe(starts === 6);
});
