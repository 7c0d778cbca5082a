/**
 * One lock that many want, each in a session of its own: hand-overs per second, by turns with etcd, whose recipe runs
 * in its lock service (a key per waiter, each of whom waits for the one before it).
 *
 * A hand-over is a commit that comes behind another. With the peer `bare` it is said how many of these the bare
 * pipeline makes, one at a time on the same machine: what is left when nothing is done but to send, to sync and to
 * count a quorum.
 *
 * Settings: waiters=64
 */
import { type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import type { LoadSpec, System } from '../../system.ts';
import { cells, found, HEAD, type Measured, measureByTurns, throughputBar, withSystems } from '../bed.ts';

const WAITERS = 64;
/** Of etcd's. */
const LEAST = 5;
const BARE = 'bare';
/** An acquire and a release. */
const COMMITS_PER_CYCLE = 2;

export const SETTINGS = ['waiters'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const measured = await withSystems(context, ['etcd', BARE], async (systems) => {
    const all: Measured[] = [];
    for (const inflight of numbersOf(context, 'waiters', [WAITERS])) {
      all.push(...(await measureByTurns(context, systems, (system) => loadOf(system, inflight))));
    }
    return all;
  });
  const bars = throughputBar(measured, {
    peer: 'etcd',
    inflight: WAITERS,
    least: LEAST,
    what: 'hand-overs of one lock',
  });
  const text = table(HEAD, measured.map(cells));
  return { data: measured, text: [text, ...floor(measured)].join('\n\n'), bars };
}

function loadOf(system: System, inflight: number): Pick<LoadSpec, 'workload' | 'inflight'> {
  return system.name === BARE ? { workload: 'lock', inflight: 1 } : { workload: 'contended', inflight };
}

/** Hand-overs beside commits of the bare pipeline, one at a time. */
function floor(measured: readonly Measured[]): readonly string[] {
  const bare = found(measured, BARE, 1);
  if (bare === undefined) return [];
  const commits = COMMITS_PER_CYCLE * bare.summary.opsPerSecond;
  const others = measured.filter(({ system }) => system !== BARE);
  const ratios = others.map(({ system, summary }) => `${system} ${(summary.opsPerSecond / commits).toFixed(2)}`);
  return [
    `bare: ${commits.toFixed(0)} commits/s, one at a time; hand-overs in proportion to that: ${ratios.join(', ')}`,
  ];
}
