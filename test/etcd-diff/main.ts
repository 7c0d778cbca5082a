/** The command line of the comparison with a real etcd. */
import { parseArgs } from 'node:util';
import { PROFILES, type Profile } from './requests/generate.ts';
import { Bench, textOfFinding } from './run.ts';
import { missingEtcd } from './servers/etcd-process.ts';
import { LAYOUTS, type Layout } from './servers/ranges.ts';

const USAGE = `npm run fuzz:etcd -- [options]
  --seeds N        seeds from 1 on, or from --from on (default 20)
  --from S         the first seed (default 1)
  --seed S         this seed only
  --requests N     of each seed (default 1000)
  --profile P      ${PROFILES.join(', ')} (default mixed)
  --ranges L       ${LAYOUTS.join(', ')}: of the cluster (default eight)
  --nodes N        of the cluster (default 3)
  --shrink N       tries to find a shorter list (default 300)
  --all            go on after a difference`;

const PROGRESS_MS = 10_000;

interface Settings {
  readonly seeds: readonly number[];
  readonly requests: number;
  readonly profile: Profile;
  readonly layout: Layout;
  readonly nodes: number;
  readonly triesMax: number;
  readonly all: boolean;
}

/** The exit code: 0 when they did not differ, 1 when they did, 2 for what cannot be run. */
export async function main(args: readonly string[]): Promise<number> {
  let settings: Settings | undefined;
  try {
    settings = settingsOf(args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
  if (settings === undefined) {
    console.log(USAGE);
    return 0;
  }
  const missing = missingEtcd();
  if (missing !== undefined) {
    console.error(missing);
    return 2;
  }
  const bench = await Bench.start({ ...settings, seed: settings.seeds[0] ?? 1 });
  try {
    return await runAll(bench, settings);
  } finally {
    await bench.stop();
  }
}

async function runAll(bench: Bench, settings: Settings): Promise<number> {
  const { seeds, requests, profile } = settings;
  const allowed = new Map<string, number>();
  let [sent, findings] = [0, 0];
  for (const seed of seeds) {
    const result = await bench.run({ seed, requests, profile }, progressOf(seed, requests));
    sent += result.requests;
    for (const [name, count] of result.allowed) allowed.set(name, (allowed.get(name) ?? 0) + count);
    if (result.finding === undefined) {
      console.log(`seed ${seed}: ${result.requests} requests, no difference`);
      continue;
    }
    findings++;
    console.log(`seed ${seed}: differs at request ${result.finding.at + 1}; looking for a shorter list ...`);
    const [list, finding] = await bench.shrink(result.list, result.finding, settings.triesMax);
    console.log(`${textOfFinding(list, finding)}\nagain: ${replayOf(seed, settings)}\n`);
    if (!settings.all) break;
  }
  for (const [name, count] of allowed) console.log(`${String(count).padStart(7)} allowed: ${name}`);
  const changes = Object.entries(bench.changes).map(([kind, count]) => `${count} ${kind}`);
  console.log(`ranges changed: ${changes.join(', ')}`);
  console.log(
    `${sent} requests of ${seeds.length} seeds: ${findings === 0 ? 'no difference' : `${findings} with a difference`}`,
  );
  return findings === 0 ? 0 : 1;
}

function progressOf(seed: number, requests: number): (count: number) => void {
  let toldMs = performance.now();
  return (count) => {
    if (performance.now() - toldMs < PROGRESS_MS) return;
    toldMs = performance.now();
    console.log(`seed ${seed}: ${count} of ${requests} requests`);
  };
}

function replayOf(seed: number, { requests, profile, layout, nodes }: Settings): string {
  return `npm run fuzz:etcd -- --seed ${seed} --requests ${requests} --profile ${profile} --ranges ${layout} --nodes ${nodes}`;
}

/** Undefined: help was asked for. */
function settingsOf(args: readonly string[]): Settings | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '20' },
      from: { type: 'string', default: '1' },
      seed: { type: 'string' },
      requests: { type: 'string', default: '1000' },
      profile: { type: 'string', default: 'mixed' },
      ranges: { type: 'string', default: 'eight' },
      nodes: { type: 'string', default: '3' },
      shrink: { type: 'string', default: '300' },
      all: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const from = numberOf('--from', values.from);
  const seeds = Array.from({ length: numberOf('--seeds', values.seeds) }, (_, i) => from + i);
  return {
    seeds: values.seed === undefined ? seeds : [numberOf('--seed', values.seed)],
    requests: numberOf('--requests', values.requests),
    profile: oneOf('--profile', PROFILES, values.profile),
    layout: oneOf('--ranges', LAYOUTS, values.ranges),
    nodes: numberOf('--nodes', values.nodes),
    triesMax: numberOf('--shrink', values.shrink),
    all: values.all,
  };
}

function numberOf(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`${flag} must be a whole number above 0, not ${text}`);
  return value;
}

function oneOf<T extends string>(flag: string, all: readonly T[], text: string): T {
  const found = all.find((one) => one === text);
  if (found === undefined) throw new Error(`${flag} must be one of ${all.join(', ')}, not ${text}`);
  return found;
}
