/** Runs the command line in this process, because the start of a process takes most of the time. */
import { runCommandLine } from '../../packages/cli/src/program.ts';
import type { Shell } from '../../packages/cli/src/shell.ts';
import type { Ended } from './command.ts';

/** Runs one command against a cluster. It cannot prompt, as in a script. */
export async function runHere(
  endpoints: readonly string[],
  args: readonly string[],
  options: {
    readonly shown?: boolean;
    readonly signal?: AbortSignal;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Ended> {
  let out = '';
  let err = '';
  const shell: Shell = {
    env: { REMORA_ENDPOINTS: endpoints.join(','), ...options.env },
    out: (text) => {
      out += `${text}\n`;
    },
    raw: (bytes) => {
      out += Buffer.from(bytes).toString('latin1');
    },
    err: (text) => {
      err += `${text}\n`;
    },
    shown: options.shown ?? false,
    terminal: false,
    ask: () => Promise.resolve(undefined),
    askSecret: () => Promise.resolve(undefined),
    input: () => Promise.resolve(''),
  };
  const code = await runCommandLine(args, shell, () => Promise.reject(new Error('no node starts here')));
  process.exitCode = 0; // A command's exit code is not that of the tests.
  return { code, out, err };
}

/** A command's `--json` output. Throws if the command fails. */
export async function jsonHere(endpoints: readonly string[], args: readonly string[]): Promise<unknown> {
  const { code, out, err } = await runHere(endpoints, [...args, '--json']);
  if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
  return JSON.parse(out);
}
