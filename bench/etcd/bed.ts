/** What the cases have in common: clusters by turns, and loads by programs that are no Node.js processes. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { median } from '../../test/support/quantile.ts';
import { cpuMicros } from '../proc.ts';
import type { ProcessCluster } from '../process-cluster.ts';
import type { CaseBar, CaseContext } from '../raft/case.ts';
import { secureRemora } from '../secure-remora.ts';
import { etcd, remora } from '../servers.ts';
import type { EntryChoice, ServerProcess } from '../system.ts';

export interface LoadFigures {
  readonly ops: number;
  readonly opsPerSecond: number;
  readonly errors: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time per operation of the server that clients are connected to, and of all three. */
  readonly entryMicros: number;
  readonly serverMicros: number;
}

export interface Measured {
  readonly load: string;
  readonly system: string;
  readonly runs: readonly LoadFigures[];
}

/** Runs `use` with clusters of the product, of the baseline and of the peers that the case can do with. */
export async function withClusters<T>(
  context: CaseContext,
  entry: EntryChoice,
  use: (clusters: readonly ProcessCluster[]) => Promise<T>,
  able: readonly string[] = ['etcd'],
): Promise<T> {
  const { root, baseline, profileDir } = context;
  const peers = context.peers.filter((peer) => able.includes(peer));
  const dir = join(context.dir, entry);
  mkdirSync(dir, { recursive: true });
  const clusters = [remora({ name: 'remora', root, dir, entry, profileDir })];
  if (baseline !== undefined) clusters.push(remora({ name: 'baseline', root: baseline, dir, entry, profileDir }));
  if (peers.includes('etcd')) clusters.push(etcd({ root, dir, entry }));
  if (peers.includes('secure')) clusters.push(secureRemora({ name: 'secure', root, dir, entry, profileDir }));
  try {
    for (const cluster of clusters) {
      context.progress(`starting ${cluster.name} ...`);
      await cluster.start();
    }
    return await use(clusters);
  } finally {
    await Promise.all(clusters.map((cluster) => cluster.stop()));
  }
}

/** Loads all clusters by turns; a first run of each, while V8 compiles, does not count. */
export async function byTurns(
  context: CaseContext,
  clusters: readonly ProcessCluster[],
  load: string,
  run: (cluster: ProcessCluster) => Promise<LoadFigures>,
): Promise<readonly Measured[]> {
  const all = clusters.map((cluster) => ({ cluster, runs: [] as LoadFigures[] }));
  for (let i = 0; i <= context.runs; i++) {
    for (const { cluster, runs } of all) {
      const figures = await run(cluster);
      if (i > 0) runs.push(figures);
    }
  }
  return all.map(({ cluster: { name: system }, runs }) => {
    const rate = median(runs.map(({ opsPerSecond }) => opsPerSecond));
    context.progress(`${load}, ${system}: ${rate.toFixed(0)}/s`);
    return { load, system, runs };
  });
}

/** CPU time that the servers of a cluster take while something happens. */
export class ServerCpu {
  readonly #servers: readonly ServerProcess[];
  readonly #begun: readonly number[];

  constructor(servers: readonly ServerProcess[]) {
    this.#servers = servers;
    this.#begun = servers.map(({ pid }) => cpuMicros(pid));
  }

  perOp(ops: number): Pick<LoadFigures, 'entryMicros' | 'serverMicros'> {
    const used = this.#servers.map(({ pid }, i) => cpuMicros(pid) - (this.#begun[i] ?? 0));
    // Where clients are connected to a follower, it has a role of its own.
    const entryRole = this.#servers.some(({ role }) => role === 'entry') ? 'entry' : 'leader';
    const entry = used[this.#servers.findIndex(({ role }) => role === entryRole)] ?? 0;
    const each = Math.max(1, ops);
    return { entryMicros: entry / each, serverMicros: used.reduce((sum, micros) => sum + micros, 0) / each };
  }
}

/** Debian's packages for Go, without the network. */
const GO = { GO111MODULE: 'off', GOPATH: '/usr/share/gocode' };
const GRPC_GO = join(GO.GOPATH, 'src/google.golang.org/grpc');

/** Compiles load.go. @throws Error with advice when Go or its gRPC is not installed. */
export function compiledGoLoad({ root, dir }: CaseContext): string {
  const program = join(dir, 'etcd-load');
  const source = join(root, 'bench/etcd/load.go');
  if (!existsSync(GRPC_GO)) {
    throw new Error('this case needs Go and its gRPC; on Debian: apt-get install golang-go golang-google-grpc-dev');
  }
  const env = { ...process.env, ...GO, GOCACHE: join(dir, 'go-cache') };
  const { status, stderr } = spawnSync('go', ['build', '-o', program, source], { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`load.go does not compile: ${stderr}`);
  return program;
}

/** Runs the Go program against the entry of a cluster. */
export async function goLoad(
  program: string,
  cluster: ProcessCluster,
  flags: Readonly<Record<string, string | number | boolean>>,
  seconds: number,
): Promise<LoadFigures> {
  const address = await cluster.entryAddress();
  const args = Object.entries({ ...flags, address, seconds }).map(([flag, value]) => `-${flag}=${value}`);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const servers = await cluster.processes('unary-put');
  let cpu: ServerCpu | undefined;
  let micros: Pick<LoadFigures, 'entryMicros' | 'serverMicros'> | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as {
      readonly type: string;
      readonly ops?: number;
      readonly seconds?: number;
    } & Partial<LoadFigures>;
    if (said.type === 'measuring') cpu = new ServerCpu(servers);
    if (said.type === 'measured') micros = cpu?.perOp(1);
    if (said.type !== 'result') continue;
    const { ops = 0, errors = 0, p50Ms = 0, p99Ms = 0 } = said;
    const { entryMicros = 0, serverMicros = 0 } = micros ?? {};
    const each = Math.max(1, ops);
    await exited(child);
    return {
      ...{ ops, opsPerSecond: ops / (said.seconds ?? seconds), errors, p50Ms, p99Ms },
      ...{ entryMicros: entryMicros / each, serverMicros: serverMicros / each },
    };
  }
  throw new Error(`${program} ended without a result: ${await exited(child)}`);
}

export function exited(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    if (child.exitCode !== null) return resolve(`exit code ${child.exitCode}`);
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
}

export const HEAD = ['load', 'system', 'ops/s', 'runs', 'p50 ms', 'p99 ms', 'entry µs per op', 'servers µs per op'];

export function cells({ load, system, runs }: Measured): readonly string[] {
  const of = (pick: (figures: LoadFigures) => number): number => median(runs.map(pick));
  const rates = runs.map(({ opsPerSecond }) => opsPerSecond).toSorted((a, b) => a - b);
  const errors = runs.reduce((sum, run) => sum + run.errors, 0);
  return [
    load,
    errors === 0 ? system : `${system} (${errors} errors)`,
    of(({ opsPerSecond }) => opsPerSecond).toFixed(0),
    rates.map((rate) => rate.toFixed(0)).join(' '),
    of(({ p50Ms }) => p50Ms).toFixed(2),
    of(({ p99Ms }) => p99Ms).toFixed(2),
    of(({ entryMicros }) => entryMicros).toFixed(1),
    of(({ serverMicros }) => serverMicros).toFixed(1),
  ];
}

/** Bars about the rate in proportion to another system's; none where one of the two was not measured. */
export function rateBar(
  measured: readonly Measured[],
  load: string,
  least: number,
  { subject = 'remora', other = 'etcd' }: { readonly subject?: string; readonly other?: string } = {},
): readonly CaseBar[] {
  const rate = (system: string): number => {
    const found = measured.find((each) => each.load === load && each.system === system);
    return found === undefined ? 0 : median(found.runs.map(({ opsPerSecond }) => opsPerSecond));
  };
  const [own, theirs] = [rate(subject), rate(other)];
  if (own === 0 || theirs === 0) return [];
  const value = own / theirs;
  const text = `${load}${subject === 'remora' ? '' : `, ${subject}`}: at least ${least} of ${other}`;
  return [{ text, value, unit: '×', met: value >= least }];
}
