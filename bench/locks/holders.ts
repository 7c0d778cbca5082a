/** Processes that hold locks (`holders-main.ts`), from outside. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Child } from '../../test/support/child.ts';

export interface HoldersSpec {
  readonly endpoints: readonly string[];
  readonly sessions: number;
  readonly ttlMs: number;
  /** Of each session. */
  readonly locks: number;
  /** In the queue of one further lock. */
  readonly waiters: number;
}

/** The lock that `waiters` wait for. */
export const WAITED_FOR = 'bench/waited-for';

export function lockName(session: number, n: number): string {
  return `bench/held/${session}/${n}`;
}

/** Resolves once it holds all of its locks. */
export async function startHolders(spec: HoldersSpec, dir: string): Promise<Child> {
  mkdirSync(dir, { recursive: true });
  const program = fileURLToPath(new URL('./holders-main.js', import.meta.url));
  const holders = new Child({
    command: [process.execPath, program, JSON.stringify(spec)],
    cwd: dir,
    logPath: join(dir, 'holders.log'),
  });
  await holders.message('ready');
  return holders;
}
