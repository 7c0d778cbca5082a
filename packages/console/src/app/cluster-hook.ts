import { cluster } from '../api/cluster.ts';
import type { ClusterJson, NodeJson } from '../api/cluster-types.ts';
import { type Resource, useResource } from './hooks.ts';

const EVERY_MS = 2_000;

/** The nodes and the health of the cluster, kept up to date. */
export function useCluster(everyMs = EVERY_MS): Resource<ClusterJson> {
  return useResource('cluster', cluster, { everyMs });
}

/** How people call a node. */
export function nodeName(nodes: readonly NodeJson[] | undefined, id: number): string {
  return nodes?.find((node) => node.id === id)?.name ?? `node ${id}`;
}
