/**
 * `pnpm bench raft`, `ranges`, `locks` and `etcd`: runs cases (raft/case.ts) one after another, prints
 * what came of them and writes it down.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { machine } from './machine.ts';
import type { CaseBar, CaseContext, CaseModule, CaseResult } from './raft/case.ts';

interface CaseOptions {
  readonly cases: readonly string[];
  readonly seconds: number;
  readonly runs: number;
  readonly baseline: string | undefined;
  readonly peers: readonly string[];
  readonly profile: boolean;
  readonly json: boolean;
  readonly settings: ReadonlyMap<string, string>;
}

/** What each of the commands measures; its cases are in `<name>/cases`. */
const FAMILIES = {
  raft: { says: 'Measures packages/raft alone, in processes of its own on this machine', peers: [] },
  ranges: { says: 'Measures clusters of three nodes with several ranges, through the SDK, on this machine', peers: [] },
  locks: {
    says: 'Measures locks of a cluster of three nodes, through the SDK, on this machine',
    peers: ['etcd', 'redlock', 'redis', 'bare', 'secure'],
  },
  etcd: {
    says: "Measures etcd's API of a cluster of three nodes, by clients that cost little",
    peers: ['etcd', 'secure'],
  },
} as const;
type Family = keyof typeof FAMILIES;

export function isFamily(name: string | undefined): name is Family {
  return name !== undefined && Object.hasOwn(FAMILIES, name);
}

/** Runs the command; resolves to its exit code. */
export async function main({
  root,
  family,
  argv,
}: {
  readonly root: string;
  readonly family: Family;
  readonly argv: readonly string[];
}): Promise<number> {
  const known = await loadCases(new URL(`./${family}/cases/`, import.meta.url));
  let options: CaseOptions | undefined;
  try {
    options = parseOptions(argv, family, known);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${help(family, known)}`);
    return 2;
  }
  if (options === undefined) {
    console.log(help(family, known));
    return 0;
  }
  const dir = mkdtempSync(join(tmpdir(), `remora-bench-${family}-`));
  try {
    const results = await runCases(options, known, { root, family, dir });
    const path = save(results, options, { root, family });
    if (options.json) console.log(JSON.stringify(describe(results, options), null, 2));
    else console.log(`\n${render(results)}\n\nwritten to ${path}`);
    rmSync(dir, { recursive: true, force: true });
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    console.error(`(logs and data are kept in ${dir})`);
    return 1;
  }
}

type Results = ReadonlyMap<string, CaseResult>;

type Cases = ReadonlyMap<string, CaseModule>;

async function loadCases(dir: URL): Promise<Cases> {
  const cases = new Map<string, CaseModule>();
  for (const file of readdirSync(dir).sort()) {
    if (file.endsWith('.js')) cases.set(file.slice(0, -'.js'.length), await import(new URL(file, dir).href));
  }
  return cases;
}

async function runCases(
  options: CaseOptions,
  known: Cases,
  { root, family, dir }: { readonly root: string; readonly family: Family; readonly dir: string },
): Promise<Results> {
  const results = new Map<string, CaseResult>();
  for (const [name, { run }] of known) {
    if (!options.cases.includes(name)) continue;
    const context: CaseContext = {
      root,
      baseline: options.baseline,
      peers: options.peers,
      dir: join(dir, name),
      seconds: options.seconds,
      runs: options.runs,
      profileDir: options.profile ? join(root, 'bench-results', 'profiles', `${family}-${name}`) : undefined,
      settings: options.settings,
      progress: (line) => process.stderr.write(`${name}: ${line}\n`),
    };
    mkdirSync(context.dir);
    results.set(name, await run(context));
  }
  return results;
}

function render(results: Results): string {
  return [...results].map(([name, { text, bars }]) => [`## ${name}`, text, barList(bars)].join('\n\n')).join('\n\n');
}

function barList(bars: readonly CaseBar[]): string {
  return bars
    .map(({ met, text, value, unit }) => `${met ? 'met   ' : 'missed'}  ${text} (${value.toPrecision(3)}${unit})`)
    .join('\n');
}

function save(
  results: Results,
  options: CaseOptions,
  { root, family }: { readonly root: string; readonly family: Family },
): string {
  const dir = join(root, 'bench-results');
  mkdirSync(dir, { recursive: true });
  const path = join(dir, `${family}-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.json`);
  writeFileSync(path, `${JSON.stringify(describe(results, options), null, 2)}\n`);
  return path;
}

function describe(results: Results, options: CaseOptions): object {
  const cases = Object.fromEntries([...results].map(([name, { data, bars }]) => [name, { data, bars }]));
  const settings = Object.fromEntries(options.settings);
  return {
    formatVersion: 1,
    at: new Date().toISOString(),
    machine: machine(),
    options: { ...options, settings },
    cases,
  };
}

function help(family: Family, known: Cases): string {
  const settings = [...known].map(([name, { SETTINGS }]) => `    ${name}: ${SETTINGS.join(', ')}`).join('\n');
  const { says, peers } = FAMILIES[family];
  const peer = peers.length === 0 ? '' : `  --peer <names>       measure these too, by turns: ${peers.join(', ')}\n`;
  return `pnpm bench ${family} [options]

${says}; see docs/benchmarks.md.

  --cases <names>      ${[...known.keys()].join(', ')} (default: all)
  --seconds <n>        length of one measurement, after its warm-up (default: 3)
  --runs <n>           repetitions, of which the median counts (default: 3)
  --set <name=value>   a setting of a case, as its file in bench/${family}/cases says; may be repeated:
${settings}
  --baseline <dir>     measure the nodes of another working tree too, by turns, where a case can
${peer}  --profile            write CPU profiles of all processes to bench-results/profiles/
  --json               print JSON instead of tables
  --help               print this`;
}

/** Undefined: help was asked for. @throws Error that says what is wrong with the arguments. */
function parseOptions(argv: readonly string[], family: Family, known: Cases): CaseOptions | undefined {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      cases: { type: 'string', default: [...known.keys()].join(',') },
      seconds: { type: 'string', default: '3' },
      runs: { type: 'string', default: '3' },
      baseline: { type: 'string' },
      peer: { type: 'string', multiple: true, default: [] },
      set: { type: 'string', multiple: true, default: [] },
      profile: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const cases = values.cases.split(',');
  const unknown = cases.find((name) => !known.has(name));
  if (unknown !== undefined) throw new Error(`--cases: "${unknown}" is none of ${[...known.keys()].join(', ')}`);
  const peers = values.peer.flatMap((text) => text.split(','));
  const possible: readonly string[] = FAMILIES[family].peers;
  const stranger = peers.find((name) => !possible.includes(name));
  if (stranger !== undefined) throw new Error(`--peer: "${stranger}" is none of ${possible.join(', ') || '(none)'}`);
  const [seconds, runs] = [Number(values.seconds), Number(values.runs)];
  if (!(seconds > 0) || !(runs > 0)) throw new Error('--seconds and --runs take numbers above 0');
  const settings = new Map(
    values.set.map((text) => {
      const at = text.indexOf('=');
      if (at < 1) throw new Error(`--set: "${text}" is not name=value`);
      const name = text.slice(0, at);
      // A misspelt name would run for many minutes what nobody asked for.
      if (!cases.some((one) => known.get(one)?.SETTINGS.includes(name))) {
        throw new Error(`--set: "${name}" is no setting of ${cases.join(', ')}`);
      }
      return [name, text.slice(at + 1)] as const;
    }),
  );
  const baseline = values.baseline === undefined ? undefined : resolve(values.baseline);
  return { cases, seconds, runs, baseline, peers, profile: values.profile, json: values.json, settings };
}
