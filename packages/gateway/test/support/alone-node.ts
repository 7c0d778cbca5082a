import { ServiceError } from '@remora/base';
import type { EtcdNode } from '../../src/etcd/etcd-node.ts';

/** A node without a cluster: nothing is wrong with it, and neither masters nor other nodes answer. */
export const ALONE_NODE: EtcdNode = {
  master: { call: refuse },
  dialer: { channel: () => ({ call: refuse, stream: refused }) } as unknown as EtcdNode['dialer'],
  conditions: () => [],
  program: '0.0.0-test',
};

function refuse(...args: readonly unknown[]): { cancel(): void } {
  const done = args.at(-1) as (error: ServiceError) => void;
  done(new ServiceError('UNAVAILABLE', 'this node has no cluster'));
  return { cancel() {} };
}

function refused(): never {
  throw new ServiceError('UNAVAILABLE', 'this node has no cluster');
}
