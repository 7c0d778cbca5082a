/**
 * A round of `etcd-runner watcher` (etcd 3.4, tools/etcd-runner/command/watch_command.go) without its limit of puts:
 * 500 keys are put below each of 10 prefixes, and 10 clients watch each prefix until they have seen all of its keys.
 * `live` watches start before the puts, `past` ones after them, from the revision of the first put. An operation is one
 * event at one client; p50 and p99 are over clients, each until its last event. The round before it warms up.
 *
 * Settings: keys=500 (below each prefix)  start=live,past  entry=leader,follower
 */
import { type CaseContext, type CaseResult, wordsOf } from '../../raft/case.ts';
import { setting } from '../../ranges/bed.ts';
import { table } from '../../report.ts';
import { byTurns, cells, compiledGoLoad, goLoad, HEAD, type Measured, rateBar, withClusters } from '../bed.ts';

export const SETTINGS = ['keys', 'start', 'entry'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const program = compiledGoLoad(context);
  const keys = setting(context, 'keys', 500);
  const measured: Measured[] = [];
  for (const entry of wordsOf(context, 'entry', ['leader', 'follower'])) {
    if (entry !== 'leader' && entry !== 'follower') throw new Error(`entry: "${entry}" is neither leader nor follower`);
    await withClusters(context, entry, async (clusters) => {
      for (const start of wordsOf(context, 'start', ['live', 'past'])) {
        const flags = { do: 'watchers', keys, past: start === 'past' };
        const load = (cluster: Parameters<typeof goLoad>[1]) => goLoad(program, cluster, flags, context.seconds);
        measured.push(...(await byTurns(context, clusters, `${start} ${entry}`, load)));
      }
    });
  }
  const bars = [...new Set(measured.map(({ load }) => load))].flatMap((name) => rateBar(measured, name, 1));
  return { data: measured, text: table(HEAD, measured.map(cells)), bars };
}
