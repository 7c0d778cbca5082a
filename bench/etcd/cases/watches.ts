/**
 * Many watches on one stream, by a client for Go: each watches a key of its own, and one of the keys is put every
 * millisecond, on the same connection. Each put makes one event; the times are from the call to the event.
 *
 * Settings: watches=1000
 */
import type { CaseContext, CaseResult } from '../../raft/case.ts';
import { setting } from '../../ranges/bed.ts';
import { table } from '../../report.ts';
import { byTurns, cells, compiledGoLoad, goLoad, HEAD, rateBar, withClusters } from '../bed.ts';

export const SETTINGS = ['watches'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const program = compiledGoLoad(context);
  const keys = setting(context, 'watches', 1_000);
  const name = `${keys} watches`;
  const measured = await withClusters(context, 'leader', (clusters) =>
    byTurns(context, clusters, name, (cluster) => goLoad(program, cluster, { do: 'watch', keys }, context.seconds)),
  );
  return { data: measured, text: table(HEAD, measured.map(cells)), bars: rateBar(measured, name, 0.97) };
}
