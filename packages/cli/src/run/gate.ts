// GA1. A command waits behind its gate: its process already has its id, its start time and its session, and runs a
//      shell that waits for one line; then that process becomes the command (exec). So the command can be named and
//      guarded before it does anything, and it never begins if this process dies before it has opened the gate: the
//      shell reads the end of its pipe instead.
// GA2. The command's environment is exactly the requested one. Shells drop entries whose names are not valid for shell
//      variables, such as `a.b`; env(1) adds those again. Names are data: after `--` env reads no options, so an entry
//      such as `-Sprogram` is an entry. env would also take a program whose path contains a `=` for an entry, so
//      nice(1) precedes such a program, which changes nothing with `-n 0`. Both are called by their paths, not by the
//      command's PATH.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

export interface GatedCommand {
  readonly child: ChildProcess;
  open(): void;
  /** Ensures that the command does not begin any more. */
  close(): void;
}

const GATE = 3;
const SCRIPT = `read -r REMORA_GATE <&${GATE} || exit 1; exec ${GATE}<&-; exec "$@"`;
const ENV = ['/usr/bin/env', '--'];
const NICE = ['/usr/bin/nice', '-n', '0', '--'];

export interface GatedRequest {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether the command gets a session, and so a process group, of its own. */
  readonly ownSession: boolean;
}

export function startGated({ argv, env, ownSession }: GatedRequest): GatedCommand {
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'sh', ...addingOdd(env, argv[0] ?? ''), ...argv], {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    detached: ownSession,
    env,
  });
  const gate = child.stdio[GATE] as Writable | null | undefined;
  // The pipe breaks if the shell was killed at the gate; the shell's end reports that.
  gate?.on('error', () => {});
  return {
    child,
    open: () => gate?.end('\n'),
    close: () => gate?.destroy(),
  };
}

/** The programs that add the entries which shells drop (GA2). */
function addingOdd(env: GatedRequest['env'], program: string): readonly string[] {
  const odd = Object.entries(env).filter(([name, value]) => value !== undefined && !/^[A-Za-z_]\w*$/.test(name));
  // Shells differ in what exec does with a program such as `-a`.
  if (odd.length === 0 && !program.startsWith('-')) return [];
  return [...ENV, ...odd.map(([name, value]) => `${name}=${value}`), ...(program.includes('=') ? NICE : [])];
}
