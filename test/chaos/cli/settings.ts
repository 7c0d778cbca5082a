/** Parses the command line of `pnpm chaos`. */
import { parseArgs } from 'node:util';
import { NODES as CHANGING_NODES } from '../changes/scenario.ts';

export const USAGE = `pnpm chaos [locks|ranges|upgrade] [options]

Runs a cluster of real processes under load and faults, and judges everything that its clients were told.
With 'locks' clients do nothing but use locks, 50 of them and 10 locks unless told otherwise, and what befalls them and the
nodes is what may part holders from their locks: kills, SIGSTOP for longer than sessions live, partitions, locks taken by force.
With 'ranges' nothing fails but gateways, at each message of the transactions that they coordinate, and ranges are split,
merged, moved and handed over all the time; what a run must have seen of that is judged, too.
With 'upgrade' (npm run test:upgrade) the nodes change between two releases, up, down and up again, until it is finalized.

  --minutes M     how long faults befall the cluster (default 1, and 5 with 'locks')
  --seed S        draws faults, their order and their times (default: by chance)
  --nodes N       3 to 5 (default 3, and 4 with 'ranges'); from 4 on, replicas are moved
  --clients N     client processes (default 3; with 'locks' 10, each of which is five clients)
  --think MS      mean pause of a worker between two operations (default 40); less is more load
  --faults A,B    only these kinds of faults; --list names all
  --list          names all kinds of faults, and ends
  --dir DIR       where data, logs, journals and the report go (default: a new one in .remora/chaos)
  --judge DIR     judge the journals of a run that was kept, again, and end
  --auth          with TLS, authentication and users whose rights change (default: with one seed in four, but not with 'ranges' and 'upgrade')
  --no-auth       without
  --keep          keep data, logs and journals also of a run in which all is well
Ends with 0: every promise held; 1: one did not, or could not be decided; 2: not to be run like this.
Ctrl-C ends the faults, and the run in good order; a second one ends it at once.`;

/** One seed in so many runs with authentication. */
const AUTH_SEEDS = 4;
const AUTH_SEED = 3;

export interface Settings {
  readonly help: boolean;
  readonly list: boolean;
  readonly course: 'faults' | 'locks' | 'changes' | 'upgrade';
  readonly minutes: number;
  readonly seed: number;
  readonly nodes: number;
  readonly clients: number;
  readonly thinkMs: number;
  readonly auth: boolean;
  readonly only: ReadonlySet<string> | undefined;
  readonly dir: string | undefined;
  readonly judge: string | undefined;
  readonly keep: boolean;
}

/** @throws Error that describes the mistake. */
export function settingsOf(
  args: readonly string[],
  given: { readonly kinds: readonly string[]; readonly chance: () => number },
): Settings {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    args: args.filter((argument) => argument !== '--'),
    options: {
      minutes: { type: 'string' },
      seed: { type: 'string' },
      nodes: { type: 'string' },
      clients: { type: 'string' },
      think: { type: 'string' },
      faults: { type: 'string' },
      dir: { type: 'string' },
      judge: { type: 'string' },
      auth: { type: 'boolean', default: false },
      'no-auth': { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const course = courseOf(positionals);
  const nodes = whole('nodes', values.nodes) ?? (course === 'changes' ? CHANGING_NODES : 3);
  if (nodes < 3 || nodes > 5) throw new Error(`--nodes: ${nodes} is not 3 to 5`);
  if (course === 'changes' && nodes < CHANGING_NODES) throw new Error('--nodes: replicas cannot be moved with 3');
  const minutes = values.minutes === undefined ? (course === 'locks' ? 5 : 1) : Number(values.minutes);
  if (!(minutes > 0)) throw new Error(`--minutes: "${values.minutes}" is not a number above 0`);
  const seed = whole('seed', values.seed) ?? given.chance();
  return {
    help: values.help,
    list: values.list,
    minutes,
    seed,
    auth: authOf({ auth: values.auth, noAuth: values['no-auth'], course, seed }),
    course,
    nodes,
    clients: whole('clients', values.clients) ?? (course === 'locks' ? 10 : 3),
    thinkMs: whole('think', values.think) ?? 40,
    only: kindsOf(values.faults, given.kinds),
    dir: values.dir,
    judge: values.judge,
    keep: values.keep,
  };
}

function courseOf(positionals: readonly string[]): Settings['course'] {
  const [what, ...rest] = positionals;
  if (what === undefined) return 'faults';
  if (what === 'ranges' && rest.length === 0) return 'changes';
  if (what === 'locks' && rest.length === 0) return 'locks';
  if (what === 'upgrade' && rest.length === 0) return 'upgrade';
  throw new Error(`there is no '${positionals.join(' ')}'; there are: locks, ranges, upgrade`);
}

function authOf(given: {
  readonly auth: boolean;
  readonly noAuth: boolean;
  readonly course: Settings['course'];
  readonly seed: number;
}): boolean {
  const { auth, noAuth, course, seed } = given;
  if (auth && noAuth) throw new Error('--auth and --no-auth contradict one another');
  // The proxies that kill gateways read the frames of nodes.
  if (auth && course === 'changes') throw new Error("--auth: 'ranges' reads what nodes send, so it runs without TLS");
  if (auth && course === 'upgrade') throw new Error("--auth: 'upgrade' lays out nodes without certificates");
  const isPlain = course === 'changes' || course === 'upgrade';
  return auth || (!noAuth && !isPlain && seed % AUTH_SEEDS === AUTH_SEED);
}

function whole(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Error(`--${name}: "${text}" is not a whole number above 0`);
}

function kindsOf(text: string | undefined, kinds: readonly string[]): ReadonlySet<string> | undefined {
  if (text === undefined) return undefined;
  const chosen = text.split(',').map((kind) => kind.trim());
  const unknown = chosen.find((kind) => !kinds.includes(kind));
  if (unknown !== undefined) throw new Error(`there is no fault '${unknown}'; there are: ${kinds.join(', ')}`);
  return new Set(chosen);
}
