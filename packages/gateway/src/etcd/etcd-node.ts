import type { HealthCondition } from '@remora/protocol';
import type { ClusterCallsDeps } from '../admin/cluster-calls.ts';

/** What etcd's services need to know of the node and the cluster besides keys. */
export interface EtcdNode extends Pick<ClusterCallsDeps, 'master' | 'dialer'> {
  /** What is wrong with the cluster, the worst first. */
  conditions(): readonly HealthCondition[];
  /** The version of the program, for people. */
  readonly program: string;
}
