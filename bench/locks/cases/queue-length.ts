/**
 * What a hand-over costs the servers in CPU time when few wait and when many do.
 *
 * Settings: waiters=10,10000
 */
import { type CaseBar, type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { cells, HEAD, type Measured, measureByTurns, withSystems } from '../bed.ts';

/** Of the cost with the fewest. */
const MOST = 1.3;

export const SETTINGS = ['waiters'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const measured = await withSystems(context, [], async (systems) => {
    const all: Measured[] = [];
    for (const inflight of numbersOf(context, 'waiters', [10, 10_000])) {
      all.push(...(await measureByTurns(context, systems, { workload: 'queue', inflight })));
    }
    return all;
  });
  return { data: measured, text: table(HEAD, measured.map(cells)), bars: bars(measured) };
}

function bars(measured: readonly Measured[]): readonly CaseBar[] {
  const own = measured.filter(({ system }) => system === 'remora').sort((a, b) => a.inflight - b.inflight);
  const [few, many] = [own.at(0), own.at(-1)];
  if (few === undefined || many === undefined || few === many) return [];
  const value = many.serverMicrosPerOp / few.serverMicrosPerOp;
  const text = `CPU time of all nodes for a hand-over, ${many.inflight} waiters: at most ${MOST} of that with ${few.inflight}`;
  return [{ text, value, unit: '×', met: value <= MOST }];
}
