import type { HealthCondition } from '@remora/protocol';
import type { ClusterCallsDeps } from '../admin/cluster-calls.ts';
import type { AuthAdmin } from '../authorisation/auth-admin.ts';

/** What etcd's services need to know of the node and the cluster besides keys. */
export interface EtcdNode extends Pick<ClusterCallsDeps, 'master' | 'dialer'> {
  /** Users and roles. */
  readonly auth: AuthAdmin;
  /** What is wrong with the cluster, the worst first. */
  conditions(): readonly HealthCondition[];
  /** The version of the program, for people. */
  readonly program: string;
}
