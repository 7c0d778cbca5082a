/** The command line of a simulation. */
import { parseArgs } from 'node:util';

export const usage = (command: string): string => `${command} [options]
  --seeds N          run N seeds (default 200)
  --seed S           the first seed (default 1); alone: run this one seed, and shrink it if it fails
  --step N           only every Nth seed (default 1)
  --minutes M        stop after M minutes
  --jobs J           threads (default 1)
  --resume           go on where the last run stopped; after a failure, with the seed that failed
  --faults A,B       of the drawn faults only those of these kinds
  --schedule FILE    with --seed: the faults of a file in place of the drawn ones
  --mutation NAME    with a planted bug (pnpm planted --list, pnpm planted:raft --list)
  --keep-going       do not stop at the first failure
  --histories DIR    with --seed: write what clients asked and were told as JSON lines (test/checkers reads them)
Ends with 0: every promise held; 1: one did not, or a kind of fault never happened; 2: not to be run like this.`;

export interface Settings {
  readonly help: boolean;
  /** One seed alone. */
  readonly single: boolean;
  readonly seed: number;
  readonly seeds: number;
  /** From one seed to the next. */
  readonly step: number;
  readonly minutes: number;
  readonly jobs: number;
  readonly resume: boolean;
  readonly keepGoing: boolean;
  readonly faults: string | undefined;
  readonly schedule: string | undefined;
  readonly mutation: string | undefined;
  readonly histories: string | undefined;
}

/**
 * Reads the command line. An invalid number must not lead to an empty run, which would pass.
 * @throws Error that names what is wrong.
 */
export function settingsOf(args: readonly string[]): Settings {
  const values = parse(args);
  const seeds = above0('seeds', values.seeds, true);
  const seed = above0('seed', values.seed, true);
  const step = above0('step', values.step, true);
  const minutes = above0('minutes', values.minutes, false);
  const single = seed !== undefined && seeds === undefined && minutes === undefined;
  if (values.schedule !== undefined && !single)
    throw new Error('--schedule needs --seed, without --seeds or --minutes');
  if (values.resume && seed !== undefined) throw new Error('--resume goes on from its own seed: leave out --seed');
  if (values.resume && step !== undefined) throw new Error('--resume goes on with its own step: leave out --step');
  return {
    help: values.help,
    single,
    seed: seed ?? 1,
    seeds: seeds ?? (minutes === undefined ? 200 : 1e9),
    step: step ?? 1,
    minutes: minutes ?? Number.POSITIVE_INFINITY,
    jobs: above0('jobs', values.jobs, true) ?? 1,
    resume: values.resume,
    keepGoing: values['keep-going'],
    faults: values.faults,
    schedule: values.schedule,
    mutation: values.mutation,
    histories: values.histories,
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string' },
      seed: { type: 'string' },
      step: { type: 'string' },
      minutes: { type: 'string' },
      jobs: { type: 'string' },
      resume: { type: 'boolean', default: false },
      schedule: { type: 'string' },
      faults: { type: 'string' },
      mutation: { type: 'string' },
      histories: { type: 'string' },
      'keep-going': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

function above0(name: string, text: string | undefined, whole: boolean): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (value > 0 && (!whole || Number.isSafeInteger(value))) return value;
  throw new Error(`--${name}: "${text}" is not a ${whole ? 'whole ' : ''}number above 0`);
}
