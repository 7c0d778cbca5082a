import type { admin } from '@remora/protocol/remora';
import { describe, expect, test } from 'vitest';
import { awaitNode, isEmpty, leadsNothing } from './await-node.ts';
import type { Follower } from './follow.ts';

function node(more: Partial<admin.Node>): admin.Node {
  return {
    ...{ id: 4, name: 'n4', state: 'up', roles: ['data'], silentMs: 5, version: '1' },
    ...{ peerAddress: 'p', clientAddress: 'c', httpAddress: 'h', replicas: 3, leaders: 1, bytes: 9 },
    ...{ duty: 'decommissioning', maintenanceLeftMs: 0, labels: {}, capacityBytes: 0, availableBytes: 0 },
    isMaster: false,
    ...more,
  };
}

/** A master that shows, look after look, these nodes, the last one for ever. */
function master(...looks: readonly (admin.Node | undefined)[]) {
  const left = [...looks];
  return {
    nodes: async () => {
      const now = left.length > 1 ? left.shift() : left[0];
      const nodes = [node({ id: 1, name: 'n1', replicas: 9 }), ...(now === undefined ? [] : [now])];
      return { clusterId: 'c', masterLeader: 1, leadingMs: 1, nodes };
    },
    why: async () => ['no node can take a replica: node 2 is draining'],
  };
}

function follower(looksMax = 200): Follower & { readonly said: string[] } {
  const said: string[] = [];
  const stop = new AbortController();
  let looks = 0;
  const pause = async () => {
    if (++looks === looksMax) stop.abort();
  };
  return { said, say: (line) => said.push(line), pause, signal: stop.signal };
}

const wanted = { node: node({}), until: isEmpty };

describe('waiting for a node', () => {
  test('tells what it has left, until it has nothing', async () => {
    const by = follower();
    const looks = [node({}), node({}), node({ replicas: 1, leaders: 0 }), node({ replicas: 0, leaders: 0 })];
    expect(await awaitNode(master(...looks), wanted, by)).toMatchObject({ replicas: 0 });
    expect(by.said).toEqual(['n4 has 3 replicas, leads 1 range', 'n4 has 1 replica, leads 0 ranges']);
  });

  test('of which only the leaders go is over when it leads nothing', async () => {
    const looks = [node({}), node({ leaders: 0 })];
    const last = await awaitNode(master(...looks), { node: node({}), until: leadsNothing }, follower());
    expect(last).toMatchObject({ replicas: 3, leaders: 0 });
  });

  test('says why nothing moves, when nothing has moved for a while', async () => {
    const by = follower(40);
    expect(await awaitNode(master(node({})), wanted, by)).toBeUndefined();
    expect(by.said).toEqual([
      'n4 has 3 replicas, leads 1 range',
      'n4 has 3 replicas, leads 1 range; nothing is moving:\n  no node can take a replica: node 2 is draining',
      'the cluster continues to empty n4; to follow it: remora admin nodes show n4 --watch',
    ]);
  });

  test('ends when somebody else decides otherwise about the node, or it is gone', async () => {
    const otherwise = awaitNode(master(node({}), node({ duty: 'serving' })), wanted, follower());
    await expect(otherwise).rejects.toThrow('n4 is serving now: someone changed it while this command waited');
    await expect(awaitNode(master(node({}), undefined), wanted, follower())).rejects.toThrow(
      'the cluster no longer knows node n4',
    );
  });
});
