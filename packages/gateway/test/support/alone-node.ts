import { FIRST_AUTH, KnownAuth } from '@remora/auth';
import { SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { ClusterCalls } from '../../src/admin/cluster-calls.ts';
import { AuthAdmin } from '../../src/authorisation/auth-admin.ts';
import type { Backend } from '../../src/backend.ts';
import type { EtcdNode } from '../../src/etcd/etcd-node.ts';

const master: EtcdNode['master'] = { call: refuse };
const dialer = { channel: () => ({ call: refuse, stream: refused }) } as unknown as EtcdNode['dialer'];

const noRanges: Backend['query'] = (_query, _options, done) => {
  refuse(done);
  return () => {};
};

/** A node without a cluster: nothing is wrong with it, and neither masters nor other nodes answer. */
export const ALONE_NODE: EtcdNode = {
  ...{ master, dialer, auth: noUsers() },
  conditions: () => [],
  program: '0.0.0-test',
};

function noUsers(): AuthAdmin {
  const [clock, random] = [new ManualClock(), new SeededRandom(1)];
  const known = new KnownAuth({ clock, hurry: () => {} });
  known.learn(FIRST_AUTH, 0);
  const authenticator = {
    logIn: async () => {
      throw new ServiceError('AUTH_REFUSED', 'authentication is off', { details: { etcd: 'authNotEnabled' } });
    },
    hashOf: async () => '',
  };
  const calls = new ClusterCalls({ clock, random, master, dialer });
  return new AuthAdmin({ calls, known, authenticator, random, backend: { query: noRanges }, logger: silentLogger });
}

function refuse(...args: readonly unknown[]): { cancel(): void } {
  const done = args.at(-1) as (error: ServiceError) => void;
  done(new ServiceError('UNAVAILABLE', 'this node has no cluster'));
  return { cancel() {} };
}

function refused(): never {
  throw new ServiceError('UNAVAILABLE', 'this node has no cluster');
}
