import type { NodeJson } from '@remora/gateway/http/json/cluster';
import type { LiveOverviewJson } from '@remora/gateway/http/json/history';
import { useEffect } from 'preact/hooks';
import { cluster } from '../api/cluster.ts';
import { rememberGateways } from './gateways.ts';
import type { Resource } from './hooks.ts';
import { useLiveResource } from './live.ts';
import { clusterNow } from './time.ts';

const EVERY_MS = 3_000;

/** The durations in it are as of `atMs`. */
export type ClusterState = LiveOverviewJson;

/** The nodes and the health of the cluster, kept up to date. */
export function useCluster(): Resource<ClusterState> {
  const state = useLiveResource('overview', {
    of: (overview) => overview,
    key: 'cluster',
    load: async (signal) => ({ ...(await cluster(signal)), atMs: clusterNow() }),
    everyMs: EVERY_MS,
  });
  const { data } = state;
  useEffect(() => {
    if (data !== undefined) rememberGateways(data);
  }, [data]);
  return state;
}

/** How people call a node. */
export function nodeName(nodes: readonly NodeJson[] | undefined, id: number): string {
  return nodes?.find((node) => node.id === id)?.name ?? `node ${id}`;
}
