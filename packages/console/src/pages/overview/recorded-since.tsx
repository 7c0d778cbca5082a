import { type ClusterState, nodeName } from '../../app/cluster-hook.ts';
import { Text } from '../../kit/text.tsx';
import { minuteOfDay } from '../../logic/format.ts';

/** Says since when the history of the cluster is recorded: its leader keeps it in memory. */
export function RecordedSince({ cluster }: { readonly cluster: ClusterState | undefined }) {
  if (cluster?.masterLeader === undefined || cluster.leadingMs === undefined) {
    return <>The masters have no leader, so nothing is recorded.</>;
  }
  const { masterLeader, leadingMs, nodes, atMs } = cluster;
  return (
    <>
      Recorded since {minuteOfDay(atMs - leadingMs)}, when <Text value={nodeName(nodes, masterLeader)} max={40} />{' '}
      became the leader of the masters. What an earlier leader recorded is lost.
    </>
  );
}

/** Whether the leader is newer than the span that is shown. */
export function isRecentLeader(cluster: ClusterState | undefined, spanMs: number): boolean {
  return cluster?.leadingMs !== undefined && cluster.leadingMs < spanMs;
}
