import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { CommandError } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';

/**
 * Ensures that the program exists, so that this command reports a missing one, and not a shell.
 *
 * @throws CommandError `notFound` or `cannotRun`.
 */
export function requireProgram(program: string, path: string | undefined): void {
  if (program === '') throw cannotRun(program, 'ENOENT');
  if (program.includes('/')) {
    const problem = problemOf(program);
    if (problem !== undefined) throw cannotRun(program, problem);
    return;
  }
  // Then the system's own list of directories applies, and the shell searches it.
  if (path === undefined) return;
  // Like execvp(3): a program that is found but may not be run is reported only if no other is found.
  const problems = path.split(':').map((directory) => problemOf(join(directory || '.', program)));
  if (problems.includes(undefined)) return;
  throw cannotRun(program, problems.includes('EACCES') ? 'EACCES' : 'ENOENT');
}

/** The system's error code for the program; undefined if it can be run. */
function problemOf(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return 'EACCES';
    accessSync(path, constants.X_OK);
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

function cannotRun(program: string, code: string): CommandError {
  const text = `cannot run ${program === '' ? "''" : printableText(program)}`;
  if (code === 'ENOENT') return new CommandError('notFound', `${text}: command not found`);
  if (code === 'EACCES') return new CommandError('cannotRun', `${text}: it is not executable`);
  return new CommandError('cannotRun', `${text}: ${code}`);
}
