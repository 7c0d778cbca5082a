// CPU time of an operation by stage, of the product and of the bare pipeline, from the profiles of one benchmark:
//
//   pnpm bench --peer bare --cases lock --inflight 256 --runs 1 --seconds 10 --profile
//   node bench/stage-budget.mjs bench-results/<the file that it printed>
//
// The CPU time that the kernel charged to a process is divided among stages as the samples of its main thread are,
// while the load ran. A sample belongs to the stage of the innermost function on its stack that has one; functions
// that all stages share (buffers, codecs, sockets) have none. Samples are taken by the clock: on a machine that is
// short of cores, a call that wakes another process, such as a write to a socket, looks longer than it is.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const STAGES = [
  ['log', /\/raft\/dist\/multi\/log\//],
  ['transport', /\/raft\/dist\/multi\/transport\//],
  ['raft', /\/raft\/dist\//],
  ['checkpoint', /\/dataserver\/dist\/checkpointer|\/classic-level\//],
  ['apply', /\/dataserver\/dist\/(state|engine|watch|range\/range-replica)|\/lock\/dist\//],
  ['propose', /\/dataserver\/dist\//],
  ['gateway', /\/gateway\/dist\//],
  ['client', /\/client\/dist\/|\/bench\/dist\//],
];
/** The bare pipeline is one file: its functions tell the stage. Its streams are those of `grpc-js`. */
const BARE_STAGES = new Map([
  ...['append', 'flush', 'synced'].map((name) => [name, 'log']),
  ...['apply', 'acknowledged'].map((name) => [name, 'apply']),
  ...['propose'].map((name) => [name, 'propose']),
  ...['call', 'work'].map((name) => [name, 'client']),
]);
const NATIVE = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', 'native code'],
  ['(idle)', undefined],
  ['(root)', undefined],
]);
const SHARED = 'sockets and timers';

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error('usage: node bench/stage-budget.mjs bench-results/<results>.json');
const { options, loads } = JSON.parse(readFileSync(path, 'utf8'));
const load = loads[0];
const columns = loads
  .filter((each) => each.case === load.case && each.inflight === load.inflight)
  .flatMap((each) => budgetsOf(each));
print(`${load.case} × ${load.inflight}: µs of CPU time per operation`, columns);

/** A column for each role of a system. */
function budgetsOf({ system, runs }) {
  const profiles = profilesOf(system);
  const client = profiles.find(({ name }) => name === `${system}-client`);
  if (client === undefined) throw new Error(`no profiles of ${system}; give the benchmark --profile`);
  const window = { from: client.profile.endTime - 1e6 * options.seconds, to: client.profile.endTime };
  const { processes } = runs.at(-1);
  const staged = profiles.map(({ name, profile }) => ({ name, stages: stagesOf(profile, window) }));
  const servers = staged.filter(({ name }) => name !== client.name).sort((a, b) => total(b.stages) - total(a.stages));
  const [leader, ...followers] = servers.map(({ stages }) => stages);
  const byRole = {
    client: staged.find(({ name }) => name === client.name).stages,
    leader,
    follower: mean(followers),
  };
  return Object.entries(byRole).map(([role, stages]) => {
    const charged = mean(
      processes.filter((each) => each.role === role).map((each) => new Map([['', each.cpuMicrosPerOp]])),
    );
    return { title: `${system} ${role}`, stages: scaled(stages, total(charged)) };
  });
}

/** The newest profile of each process. */
function profilesOf(system) {
  const dir = join(dirname(path), 'profiles');
  const names = readdirSync(dir).filter((name) => name.startsWith(`${system}-`));
  return names.map((name) => {
    const files = readdirSync(join(dir, name)).map((file) => join(dir, name, file));
    const newest = files.reduce((a, b) => (statSync(a).mtimeMs > statSync(b).mtimeMs ? a : b));
    return { name, profile: JSON.parse(readFileSync(newest, 'utf8')) };
  });
}

function stagesOf({ nodes, samples, timeDeltas, startTime }, { from, to }) {
  const parents = new Map();
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node.id);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const stageById = new Map(nodes.map(({ id }) => [id, stageOf(id, byId, parents)]));
  const stages = new Map();
  let at = startTime;
  for (const [i, id] of samples.entries()) {
    at += timeDeltas[i];
    const stage = stageById.get(id);
    if (stage === undefined || at < from || at > to) continue;
    stages.set(stage, (stages.get(stage) ?? 0) + timeDeltas[i]);
  }
  return stages;
}

function stageOf(leaf, byId, parents) {
  const { functionName } = byId.get(leaf).callFrame;
  if (NATIVE.has(functionName)) return NATIVE.get(functionName);
  for (let id = leaf; id !== undefined; id = parents.get(id)) {
    const { url, functionName: name } = byId.get(id).callFrame;
    const found = url.endsWith('/bare-pipeline.mjs')
      ? BARE_STAGES.get(name)
      : STAGES.find(([, pattern]) => pattern.test(url))?.[0];
    if (found !== undefined) return found;
  }
  return SHARED;
}

function mean(all) {
  const keys = new Set(all.flatMap((stages) => [...stages.keys()]));
  return new Map(
    [...keys].map((key) => [key, all.reduce((sum, stages) => sum + (stages.get(key) ?? 0), 0) / all.length]),
  );
}

function scaled(stages, micros) {
  const factor = micros / total(stages);
  return new Map([...stages].map(([stage, time]) => [stage, time * factor]));
}

function total(stages) {
  return [...stages.values()].reduce((a, b) => a + b, 0);
}

function print(title, columns) {
  const order = ['client', 'gateway', 'propose', 'raft', 'transport', 'log', 'apply', 'checkpoint', SHARED];
  const rows = [...order, 'garbage collection', 'native code'];
  const line = (name, cells) => console.log(name.padEnd(20) + cells.map((cell) => cell.padStart(17)).join(''));
  console.log(`${title}\n`);
  line(
    'stage',
    columns.map((column) => column.title),
  );
  for (const row of rows) {
    const cells = columns.map(({ stages }) => stages.get(row));
    if (cells.some((cell) => cell !== undefined))
      line(
        row,
        cells.map((cell) => cell?.toFixed(2) ?? ''),
      );
  }
  line(
    'in all',
    columns.map(({ stages }) => total(stages).toFixed(2)),
  );
}
