/**
 * Acquire and release of locks that nobody else wants, one and many in flight: Remora through its SDK, and by turns a
 * cluster of etcd (its lock service), Redlock on five Redis and one Redis (every write synced), the bare pipeline, and
 * Remora with TLS and authentication (`secure`).
 *
 * Settings: inflight=1,256
 */
import { type CaseBar, type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { cells, found, HEAD, type Measured, measureByTurns, throughputBar, withSystems } from '../bed.ts';

const MANY = 256;
const SECURE_LEAST = 0.8;
const LEAST = { bare: 0.4, etcd: 8, redlock: 2 } as const;

export const SETTINGS = ['inflight'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const measured = await withSystems(context, ['etcd', 'redlock', 'redis', 'bare', 'secure'], async (systems) => {
    const all: Measured[] = [];
    for (const inflight of numbersOf(context, 'inflight', [1, MANY])) {
      all.push(...(await measureByTurns(context, systems, { workload: 'lock', inflight })));
    }
    return all;
  });
  return { data: measured, text: table(HEAD, measured.map(cells)), bars: bars(measured) };
}

/** TLS and authentication, in proportion to neither. */
function secureBar(measured: readonly Measured[]): readonly CaseBar[] {
  const what = 'acquire + release with TLS and authentication';
  return throughputBar(measured, { subject: 'secure', peer: 'remora', inflight: MANY, least: SECURE_LEAST, what });
}

function bars(measured: readonly Measured[]): readonly CaseBar[] {
  return [...peerBars(measured), ...secureBar(measured)];
}

function peerBars(measured: readonly Measured[]): readonly CaseBar[] {
  const what = 'acquire + release';
  const many = Object.entries(LEAST).flatMap(([peer, least]) =>
    throughputBar(measured, { peer, inflight: MANY, least, what }),
  );
  const [own, etcd] = [found(measured, 'remora', 1), found(measured, 'etcd', 1)];
  if (own === undefined || etcd === undefined) return many;
  const value = own.summary.p50Ms / etcd.summary.p50Ms;
  return [...many, { text: `${what}, one in flight: p50 at most that of etcd`, value, unit: '×', met: value <= 1 }];
}
