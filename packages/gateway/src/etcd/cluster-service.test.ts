import type { ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import type { Backend } from '../backend.ts';
import type { CallInfo } from '../calls.ts';
import { EtcdCluster } from './cluster-service.ts';
import { etcdStatus } from './errors.ts';
import { Headers } from './headers.ts';

function cluster(): EtcdCluster {
  const node = (nodeId: number, state: string) => ({
    state,
    descriptor: { nodeId, name: `n${nodeId}`, peerAddress: `10.0.0.${nodeId}:7481`, clientAddress: '' },
  });
  const view = { clusterId: 'c', nodes: [node(1, 'up'), node(2, 'removed')], ranges: [], leaders: [], masterLeader: 1 };
  const backend = { nodeId: 1, view: () => view, check: () => {} } as unknown as Backend;
  return new EtcdCluster(backend, new Headers(backend), 'http');
}

/** Code and text as clients get them. */
function refusalOf(call: (members: EtcdCluster) => unknown): string {
  try {
    call(cluster());
  } catch (error) {
    const { status, message } = etcdStatus(error as ServiceError);
    return `${status} ${message}`;
  }
  return 'done';
}

const CALL: CallInfo = { timeoutMs: 1_000, callerMs: undefined, seen: { newest: 0 }, principal: undefined };

const add = (...peerURLs: string[]) => refusalOf((members) => members.memberAdd({ peerURLs, isLearner: false }, CALL));

test('changes are refused with the command that makes them (CL1)', () => {
  expect(add('http://10.0.0.9:7481')).toMatch(/^12 remora: MemberAdd .*`remora node --join`/);
  expect(refusalOf((m) => m.memberRemove({ ID: 1n }, CALL))).toMatch(/^12 .*`remora admin nodes decommission n1`/);
  expect(refusalOf((m) => m.memberUpdate({ ID: 1n, peerURLs: ['http://10.0.0.9:7481'] }, CALL))).toMatch(
    /^12 .*--advertise-peer/,
  );
});

test('what etcd refuses gets its error (CL1)', () => {
  const unknown = '5 etcdserver: member not found';
  expect(refusalOf((m) => m.memberRemove({ ID: 2n }, CALL))).toBe(unknown);
  expect(refusalOf((m) => m.memberRemove({ ID: 2n ** 64n - 1n }, CALL))).toBe(unknown);
  expect(refusalOf((m) => m.memberUpdate({ ID: 7n, peerURLs: [] }, CALL))).toBe(unknown);
  expect(refusalOf((m) => m.memberPromote({ ID: 7n }, CALL))).toBe(unknown);
  expect(refusalOf((m) => m.memberPromote({ ID: 1n }, CALL))).toBe('9 etcdserver: can only promote a learner member');
  expect(add('http://10.0.0.1:7481')).toBe('9 etcdserver: Peer URLs already exists');
  expect(add('10.0.0.9:7481')).toBe('3 etcdserver: given member URLs are invalid');
});
