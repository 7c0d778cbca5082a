/**
 * The same calls by a gRPC client for Go: each call has a deadline, which differs each time, and one of 10,000 random
 * keys. The servers should take at most half as much CPU again as for h2load, which repeats one request.
 *
 * Settings: do=range,put  load=1x64,4x64 (connections × streams)  keys=10000
 */
import { type CaseContext, type CaseResult, wordsOf } from '../../raft/case.ts';
import { setting } from '../../ranges/bed.ts';
import { table } from '../../report.ts';
import { byTurns, cells, compiledGoLoad, goLoad, HEAD, type Measured, rateBar, withClusters } from '../bed.ts';

export const SETTINGS = ['do', 'load', 'keys'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const program = compiledGoLoad(context);
  const keys = setting(context, 'keys', 10_000);
  const measured: Measured[] = [];
  await withClusters(context, 'leader', async (clusters) => {
    for (const cluster of clusters) await goLoad(program, cluster, { fill: true, keys, do: 'range' }, 0.1);
    for (const what of wordsOf(context, 'do', ['range', 'put'])) {
      for (const level of wordsOf(context, 'load', ['1x64', '4x64'])) {
        const [connections = 1, streams = 1] = level.split('x').map(Number);
        const flags = { do: what, keys, connections, streams };
        const load = (cluster: Parameters<typeof goLoad>[1]) => goLoad(program, cluster, flags, context.seconds);
        measured.push(...(await byTurns(context, clusters, `${what} ${level}`, load)));
      }
    }
  });
  const names = [...new Set(measured.map(({ load }) => load))];
  const bars = names.flatMap((name) => rateBar(measured, name, 1));
  return { data: measured, text: table(HEAD, measured.map(cells)), bars };
}
