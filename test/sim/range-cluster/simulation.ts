/** The runs of this folder as one simulation: the seeds use the plans in turn. */
import { createHash } from 'node:crypto';
import type { SimResult, Simulation } from '../common/cli/simulation.ts';
import { MISFORTUNES } from './misfortune.ts';
import { LEASES, MANY_RANGES, MOVES, type NamedPlan, TRANSACTIONS } from './plans.ts';
import { type RunResult, runSeed } from './run.ts';

const ONE_RANGE: NamedPlan = { name: 'one range', plan: { borders: [], splits: [] } };
const PLANS: readonly NamedPlan[] = [
  ONE_RANGE,
  ...MANY_RANGES,
  ...TRANSACTIONS.map(({ name, plan }) => ({ name: `transactions over ${name}`, plan })),
  ...LEASES,
  ...MOVES,
];

const COORDINATOR_ENDS = ['txnPrepare', 'txnDecide', 'txnResolve', 'txnForget'].flatMap((message) =>
  ['before', 'behind', 'after'].map((moment) => `coordinator ended ${moment} ${message}`),
);

function planOf(seed: number): NamedPlan {
  return PLANS[seed % PLANS.length] ?? ONE_RANGE;
}

/** What the runs over many seeds must have exercised. */
function figuresOf(result: RunResult): Readonly<Record<string, number>> {
  const { splits, merges, moves, snapshots, committed, refused, attached, kept, revoked, granted } = result;
  const { splitsAmidTransactions, movesAmidTransactions } = result;
  return {
    ...{ splits, merges, moves, snapshots },
    ...{ 'splits amid transactions': splitsAmidTransactions, 'moves amid transactions': movesAmidTransactions },
    'changes of a key twice, refused': refused,
    ...{
      'transactions over lists': committed,
      'keys with leases': attached,
      'leases kept by transactions': kept,
      revocations: revoked,
      grants: granted,
    },
  };
}

function firedIn({ misfortunes, kills }: RunResult): ReadonlyMap<string, number> {
  return new Map([...misfortunes, ...[...kills].map(([moment, n]) => [`coordinator ended ${moment}`, n] as const)]);
}

function hashOf(value: unknown): string {
  const text = JSON.stringify(value, (_name, one) => (one instanceof Map ? [...one] : one));
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

async function run(seed: number): Promise<SimResult> {
  const { name, plan } = planOf(seed);
  const base = { seed, schedule: [], steps: 0, simulatedMs: 0, hash: '', counts: {}, figures: {}, fired: new Map() };
  try {
    const result = await runSeed(seed, plan);
    const { acknowledged, unknown, events, simulatedMs, faults } = result;
    const [fault] = faults;
    const done: SimResult = {
      ...base,
      ...{ simulatedMs, hash: hashOf(result), steps: events, fired: firedIn(result) },
      counts: { acknowledged, unknown },
      figures: figuresOf(result),
    };
    if (fault === undefined) return done;
    return { ...done, failure: { property: 'promises', detail: `${name}: ${fault}`, last: faults.slice(1, 20) } };
  } catch (error) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { ...base, failure: { property: 'nodes do not stop', detail: `${name}: ${detail}`, last: [] } };
  }
}

export const RANGE_SIMULATION: Simulation = {
  command: 'pnpm sim:ranges',
  faultKinds: [...MISFORTUNES, ...COORDINATOR_ENDS],
  run: ({ seed }) => run(seed),
  judge: (figures) =>
    Object.entries(figures).flatMap(([name, sum]) => (sum > 0 ? [] : [`the runs met none of these: ${name}`])),
};
