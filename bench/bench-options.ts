import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type EntryChoice, WORKLOADS } from './system.ts';

export const CASES = [...WORKLOADS, 'outage', 'idle'] as const;
export type Case = (typeof CASES)[number];

export const PEERS = ['etcd', 'bare'] as const;
export type Peer = (typeof PEERS)[number];

export interface BenchOptions {
  readonly peers: readonly Peer[];
  /** Another working tree of this project, built, to compare with. */
  readonly baseline: string | undefined;
  readonly cases: readonly Case[];
  readonly inflight: readonly number[];
  /** Client processes, each with `inflight` operations in flight. */
  readonly processes: number;
  readonly seconds: number;
  readonly runs: number;
  readonly outageRuns: number;
  readonly idleSeconds: number;
  readonly entry: EntryChoice;
  readonly profile: boolean;
  readonly json: boolean;
}

export const HELP = `pnpm bench [options]

Starts a cluster of three nodes on this machine, loads it and prints what it did; see docs/benchmarks.md.

  --peer <etcd,bare>   measure these too, by turns: a cluster of etcd, and the bare pipeline as the floor
  --baseline <dir>     measure another working tree of Remora too (its packages and its benchmark built)
  --cases <names>      ${CASES.join(', ')} (default: all)
  --inflight <counts>  operations in flight (default: 1,64,256)
  --processes <n>      client processes, each with so many operations in flight; not for handoff (default: 1)
  --seconds <n>        length of one run, after its warm-up (default: 3)
  --runs <n>           runs of each kind, of which the median counts (default: 3)
  --outage-runs <n>    how often the leader is killed (default: 10)
  --idle-seconds <n>   how long idle clusters are watched in each run (default: 20)
  --entry <which>      where clients of the etcd API connect: leader or follower (default: leader, as the SDK finds it)
  --profile            write CPU profiles of all processes to bench-results/
  --json               print JSON instead of tables
  --help               print this`;

/** Undefined: help was asked for. @throws Error that says what is wrong with the arguments. */
export function parseOptions(argv: readonly string[]): BenchOptions | undefined {
  const { values } = parseArgs({
    // pnpm passes on the "--" that some put before a script's options.
    args: argv.filter((argument) => argument !== '--'),
    options: {
      peer: { type: 'string', multiple: true, default: [] },
      baseline: { type: 'string' },
      cases: { type: 'string', default: CASES.join(',') },
      inflight: { type: 'string', default: '1,64,256' },
      processes: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '3' },
      runs: { type: 'string', default: '3' },
      'outage-runs': { type: 'string', default: '10' },
      'idle-seconds': { type: 'string', default: '20' },
      entry: { type: 'string', default: 'leader' },
      profile: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    peers: values.peer.flatMap((text) => oneOfEach('--peer', text, PEERS)),
    baseline: values.baseline === undefined ? undefined : resolve(values.baseline),
    cases: oneOfEach('--cases', values.cases, CASES),
    inflight: values.inflight.split(',').map((text) => positive('--inflight', text)),
    processes: positive('--processes', values.processes),
    seconds: positive('--seconds', values.seconds),
    runs: positive('--runs', values.runs),
    outageRuns: positive('--outage-runs', values['outage-runs']),
    idleSeconds: positive('--idle-seconds', values['idle-seconds']),
    entry: oneOfEach('--entry', values.entry, ['leader', 'follower'] as const)[0] ?? 'leader',
    profile: values.profile,
    json: values.json,
  };
}

function oneOfEach<T extends string>(flag: string, text: string, known: readonly T[]): readonly T[] {
  return text.split(',').map((name) => {
    const found = known.find((each) => each === name.trim());
    if (found === undefined) throw new Error(`${flag}: "${name}" is none of ${known.join(', ')}`);
    return found;
  });
}

function positive(flag: string, text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isInteger(value)) throw new Error(`${flag}: "${text}" is not a whole number above 0`);
  return value;
}
