import { nodeClock, openFramePort, SeededRandom } from '@remora/base';
import { expect, test } from 'vitest';
import { Counter } from '../../../test/support/host/host-bed.ts';
import { until } from '../../../test/support/transport/transport-contract.ts';
import { MemoryGroupLog } from '../../testing/memory-group-log.ts';
import type { Group } from '../host-api.ts';
import { createSocketTransport } from '../transport/node/socket-transport.ts';
import { createRaftHost } from './host.ts';

const clock = nodeClock();
const conf = { voters: [201, 202, 203], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };

interface RunningNode {
  readonly group: Group;
  readonly counter: Counter;
  readonly stop: () => Promise<void>;
}

async function startNode(id: number, ports: Map<number, number>, fatal: unknown[]): Promise<RunningNode> {
  const random = new SeededRandom(id);
  const { transport, services } = createSocketTransport({
    local: { clusterId: 'test', nodeId: id, incarnation: `i${id}` },
    resolveAddress: (node) => `127.0.0.1:${ports.get(node)}`,
    clock,
    random,
    verifyPeer: () => undefined,
  });
  const listening = await openFramePort({ clock, host: '127.0.0.1', port: 0, services });
  ports.set(id, listening.port);
  const log = new MemoryGroupLog();
  const onFatal = (error: unknown) => fatal.push(error);
  const host = createRaftHost({ nodeId: id, clock, random, log, transport, onFatal });
  const counter = new Counter({ applied: { index: 0, term: 0 }, conf, history: [] });
  host.start();
  const group = host.createGroup({
    groupId: 2,
    replicaId: 200 + id,
    applied: counter.applied,
    conf,
    stateMachine: counter,
    locate: (replica) => replica - 200,
  });
  const stop = async () => {
    await host.stop();
    listening.close();
  };
  return { group, counter, stop };
}

test('three hosts over sockets replicate, and go on without the one that led', async () => {
  const ports = new Map<number, number>();
  const fatal: unknown[] = [];
  const nodes = await Promise.all([1, 2, 3].map((id) => startNode(id, ports, fatal)));
  const leader = () => nodes.find((node) => node.group.ready);
  await until('there is a leader', () => leader() !== undefined);
  for (let i = 0; i < 100; i++) leader()?.group.propose(Buffer.from(`w${i}`));
  await until('all have it', () => nodes.every((node) => node.counter.history.length === 100));
  const first = leader();
  await first?.stop();
  nodes.splice(0, 3, ...nodes.filter((node) => node !== first));
  await until('another leads', () => leader() !== undefined);
  leader()?.group.propose(Buffer.from('after'));
  await until('both have it', () => nodes.every((node) => node.counter.history.at(-1) === 'after'));
  expect(fatal).toEqual([]);
  await Promise.all(nodes.map((node) => node.stop()));
});
