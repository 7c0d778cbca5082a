/**
 * One lock that many want, each in a session of its own: hand-overs per second, by turns with etcd, whose recipe runs in
 * its lock service (a key per waiter, each of whom waits for the one before it).
 *
 * Settings: waiters=64
 */
import { type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { cells, HEAD, type Measured, measureByTurns, throughputBar, withSystems } from '../bed.ts';

const WAITERS = 64;
/** Of etcd's. */
const LEAST = 5;

export const SETTINGS = ['waiters'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const measured = await withSystems(context, ['etcd'], async (systems) => {
    const all: Measured[] = [];
    for (const inflight of numbersOf(context, 'waiters', [WAITERS])) {
      all.push(...(await measureByTurns(context, systems, { workload: 'contended', inflight })));
    }
    return all;
  });
  const bars = throughputBar(measured, {
    peer: 'etcd',
    inflight: WAITERS,
    least: LEAST,
    what: 'hand-overs of one lock',
  });
  return { data: measured, text: table(HEAD, measured.map(cells)), bars };
}
