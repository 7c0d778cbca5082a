import { silentLogger } from '@remora/base';
import type { ClusterView } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { KnownCluster } from './known-cluster.ts';
import type { KnownNode } from './known-nodes.ts';

const member = (name: string, host: string) => ({ name, peer: { host, port: 7481 } });
const node = (nodeId: number, peerAddress: string): KnownNode => ({
  ...{ nodeId, name: `n${nodeId}`, peerAddress },
  ...{ incarnation: `i${nodeId}`, removed: false },
});

function setUp(given: { known?: readonly KnownNode[]; hosts?: Readonly<Record<string, string>> } = {}) {
  const { known = [], hosts = {} } = given;
  const stored: KnownNode[][] = [];
  const initialCluster = Object.entries(hosts).map(([name, host]) => member(name, host));
  const cluster = new KnownCluster({
    options: { initialCluster, peerProxies: [] },
    founders: { clusterId: 'c', names: ['n1', 'n2', 'n3'], ownNodeId: 1 },
    records: { knownNodes: known, rememberNodes: (nodes) => stored.push([...nodes]) },
    logger: silentLogger,
    masterKnows: () => undefined,
  });
  return { cluster, stored };
}

describe('what a node knows of its cluster', () => {
  test('a founder finds the others by the names of the founding, at the addresses in its options', () => {
    const { cluster } = setUp({ hosts: { n3: 'c', n1: 'a', n2: 'b' } });
    expect([1, 2, 3, 4].map((nodeId) => cluster.addresses.next(nodeId))).toEqual([
      'a:7481',
      'b:7481',
      'c:7481',
      undefined,
    ]);
    expect([1, 3, 4].map((nodeId) => cluster.isFounder(nodeId))).toEqual([true, true, false]);
  });

  test('a list of today does not change who founded the cluster', () => {
    const { cluster } = setUp({ hosts: { n0: 'z', n2: 'b' } });
    expect(cluster.addresses.next(1)).toBeUndefined();
    expect(cluster.addresses.next(2)).toBe('b:7481');
    expect(cluster.firstIds).toEqual([1, 2, 3]);
  });

  test('hints are also for nodes that joined later, and may change in a running process', () => {
    const { cluster } = setUp({ known: [node(1_001, 'old:7481')], hosts: { n1001: 'new' } });
    cluster.addresses.failed(1_001, 'old:7481');
    expect(cluster.addresses.next(1_001)).toBe('new:7481');
    cluster.hint({ initialCluster: [member('n1001', 'newer')], peerProxies: [] });
    cluster.addresses.failed(1_001, cluster.addresses.next(1_001) ?? '');
    expect(cluster.addresses.next(1_001)).toBe('newer:7481');
    cluster.hint({ initialCluster: [], peerProxies: [member('n1001', 'proxy')] });
    expect(cluster.addresses.next(1_001)).toBe('proxy:7481');
  });

  test('the masters know better where a node is than the file of an earlier life', () => {
    const { cluster, stored } = setUp({ known: [node(2, 'old:7481')] });
    expect(cluster.addresses.next(2)).toBe('old:7481');
    const descriptor = { ...node(2, 'new:7481'), roles: [], clientAddress: '', httpAddress: '', version: '' };
    const view = { clusterId: 's', nodes: [{ descriptor, state: 'up' }], ranges: [], leaders: [], masterLeader: 1 };
    cluster.learn(view as unknown as ClusterView, [[2, 'i2']]);
    expect(cluster.addresses.next(2)).toBe('new:7481');
    expect(stored).toEqual([[node(2, 'new:7481')]]);
  });
});
