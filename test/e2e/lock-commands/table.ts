/** The exit codes of lock commands, each row as the page on replacing them shows it. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const KILLED = ['sh', '-c', 'kill -9 $$'];

export interface Row {
  /** The first cell of the page's table. */
  readonly what: string;
  /** While somebody else holds the lock. */
  readonly taken?: true;
  /** Options of each program that come before the name of the lock. Absent: it has nothing like it. */
  readonly flock?: readonly string[];
  readonly etcdctl?: readonly string[];
  readonly remora: readonly string[];
  readonly command: readonly string[];
}

const every = { flock: [], etcdctl: [], remora: [] } as const;

export const ROWS: readonly Row[] = [
  { what: 'the command ends with 0', ...every, command: ['true'] },
  { what: 'the command ends with 7', ...every, command: ['sh', '-c', 'exit 7'] },
  { what: 'signal 9 ends the command', ...every, command: KILLED },
  {
    ...{ what: 'the lock is taken, without a wait', taken: true },
    ...{ flock: ['-n'], remora: ['--wait', '0'], command: ['true'] },
  },
  {
    ...{ what: 'the lock is taken until the wait ends', taken: true },
    ...{ flock: ['-w', '0.2'], remora: ['--wait', '200ms'], command: ['true'] },
  },
  {
    ...{ what: 'the same, with an exit code of your choice, 9', taken: true },
    flock: ['-w', '0.2', '-E', '9'],
    remora: ['--wait', '200ms', '--conflict-exit-code', '9'],
    command: ['true'],
  },
  { what: 'the command does not exist', ...every, command: ['./no-such-command'] },
  { what: 'the command cannot be run', ...every, command: ['/etc/passwd'] },
  {
    what: 'an option does not exist',
    ...{ flock: ['--nonsense'], etcdctl: ['--nonsense'], remora: ['--nonsense'], command: ['true'] },
  },
];

/** Says what is missing; undefined if flock is installed. */
export function missingFlock(): string | undefined {
  const { error } = spawnSync('flock', ['--version'], { stdio: 'ignore' });
  return error === undefined ? undefined : 'flock is not installed; on Debian: apt-get install util-linux';
}

/** Says what is missing; undefined if the version of etcdctl is installed whose codes the page shows. */
export function missingEtcdctl34(): string | undefined {
  const { stdout } = spawnSync('etcdctl', ['version'], { env: { PATH: process.env.PATH, ETCDCTL_API: '3' } });
  if (/version: 3\.4\./.test(String(stdout))) return undefined;
  return 'etcdctl 3.4 is not installed; on Debian 12: apt-get install etcd-client';
}

/** The exit code of flock, in an empty directory. If the lock is to be taken, another flock holds it until the end. */
export async function flockCode({ flock = [], taken, command }: Row): Promise<number | null> {
  const dir = mkdtempSync(join(tmpdir(), 'remora-flock-'));
  const holder = taken && spawn('flock', ['lock', 'sh', '-c', 'echo held; read _'], { cwd: dir, stdio: 'pipe' });
  try {
    if (holder) await new Promise((resolve) => holder.stdout.once('data', resolve));
    return spawnSync('flock', [...flock, 'lock', ...command], { cwd: dir, stdio: 'ignore' }).status;
  } finally {
    holder?.stdin.end();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The codes of the page's table: for each row those of flock, etcdctl and remora. */
export function documentedCodes(page: string): ReadonlyMap<string, readonly string[]> {
  const [, section = ''] = /^## Exit codes$([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(page) ?? [];
  const rows = section.split('\n').filter((line) => /^\| (?!What|---)/.test(line));
  const cells = rows.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return new Map(cells.map(([what = '', ...codes]) => [what, codes]));
}
