/** The gateways of the cluster, remembered for when the one that serves this page is gone. */
import type { ClusterJson } from '@remora/gateway/http/json/cluster';
import { Store } from '../logic/store.ts';

export interface Gateway {
  readonly name: string;
  readonly url: string;
  /** It serves this page. */
  readonly isThis: boolean;
}

export const gateways = new Store<readonly Gateway[]>([]);

export function rememberGateways(cluster: ClusterJson): void {
  const next = cluster.nodes
    .filter(({ roles, duty, httpAddress }) => roles.includes('gateway') && duty !== 'removed' && httpAddress !== '')
    .map(({ id, name, httpAddress }) => ({
      name,
      url: `${location.protocol}//${httpAddress}`,
      isThis: id === cluster.answeringNode,
    }));
  if (JSON.stringify(next) !== JSON.stringify(gateways.get())) gateways.set(next);
}
