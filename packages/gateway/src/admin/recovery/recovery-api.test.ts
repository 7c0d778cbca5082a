import { EMPTY_BYTES, SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type ClusterView,
  createLocalChannel,
  createRpcRegistry,
  type Done,
  type HeldGroup,
  MASTERS,
  type Method,
  masterStrikeOff,
  nodeGoOnAlone,
  nodeGroups,
  type RangeDescriptor,
  type RpcChannel,
} from '@remora/protocol';
import { expect, test } from 'vitest';
import { ClusterCalls } from '../cluster-calls.ts';
import { RecoveryApi } from './recovery-api.ts';

const CALL = { timeoutMs: 5_000, callerMs: undefined, seen: { newest: 0 }, principal: undefined };
const RANGE: RangeDescriptor = {
  ...{ rangeId: 2, start: EMPTY_BYTES, end: EMPTY_BYTES, epoch: { confVersion: 4, version: 2 } },
  replicas: [1, 2, 3].map((nodeId) => ({ replicaId: 20 + nodeId, nodeId, type: 'voter' })),
  revisionSource: 'master',
};
const LOG = { lastTerm: 3, lastIndex: 20, votersOutgoing: [] };
const ofRange = (nodeId: number): HeldGroup => ({
  ...{ ...LOG, groupId: 2, replicaId: 20 + nodeId, range: RANGE, voters: [1, 2, 3], led: false },
});
/** The masters of this cluster are on nodes that nothing happens to. */
const OF_MASTERS: HeldGroup = {
  ...{ ...LOG, groupId: MASTERS, replicaId: 1, range: undefined, voters: [1, 4, 5], led: true },
};

/** Nodes 1 to 5, of which 2 was removed, and 3 has died since; those that are up say what they hold. */
async function recover(
  up: readonly number[],
  given: { readonly dead: string[]; readonly dryRun: boolean },
  nameOf: (nodeId: number) => string = (nodeId) => `n${nodeId}`,
) {
  const asked: string[] = [];
  const clock = new ManualClock();
  const channel = (nodeId: number): RpcChannel => {
    const registry = createRpcRegistry();
    registry.handle(nodeGroups, (_request, _context, done) => {
      if (!up.includes(nodeId)) return done(new ServiceError('UNAVAILABLE', 'nobody there'), undefined);
      const masters = [1, 4, 5].includes(nodeId) ? [OF_MASTERS] : [];
      done(undefined, { nodeId, groups: [...masters, ...(nodeId <= 3 ? [ofRange(nodeId)] : [])] });
    });
    registry.handle(nodeGoOnAlone, ({ groupId }, _context, done) => {
      asked.push(`${groupId} on ${nodeId}`);
      done(undefined, undefined);
    });
    return createLocalChannel({ registry, clock });
  };
  const master = {
    call<Request, Reply>(method: Method<Request, Reply>, request: Request, _: unknown, done: Done<Reply>) {
      const view: ClusterView = { clusterId: 'c', nodes: [], ranges: [RANGE], leaders: [], masterLeader: 4 };
      if (method.name === masterStrikeOff.name) asked.push(`strike off ${JSON.stringify(request)}`);
      done(undefined, view as Reply);
      return { cancel() {} };
    },
  };
  const dialer = { channel, channelTo: channel.bind(undefined, 0) };
  const nodes = () => [1, 2, 3, 4, 5].map((nodeId) => ({ nodeId, name: nameOf(nodeId), removed: nodeId === 2 }));
  const calls = new ClusterCalls({ clock, random: new SeededRandom(1), dialer, master });
  const { lost, dead } = await new RecoveryApi(calls, { dialer, nodes }).recoverMajority(
    { ...given, begun: false },
    CALL,
  );
  return { lost: lost.map(({ rangeId, survivor }) => `${rangeId} on ${survivor}`), dead: dead.map(Number), asked };
}

test('a node that was removed before is not left, and need not be called dead (RA3)', async () => {
  const found = await recover([1, 4, 5], { dead: ['n3'], dryRun: true });
  expect(found).toEqual({ lost: ['2 on 1'], dead: [3, 2], asked: [] });
  const { asked } = await recover([1, 4, 5], { dead: ['n3'], dryRun: false });
  expect(asked).toEqual(['strike off {"nodeIds":[3]}', '2 on 1']);
});

test('one that was removed and answers yet is a voter that is left (RA3)', async () => {
  const work = recover([1, 2, 4, 5], { dead: ['n3'], dryRun: true });
  await expect(work).rejects.toThrow('nothing has lost its majority');
});

test('nothing is done while one that is called dead answers, or another one does not (RA2)', async () => {
  await expect(recover([1, 3, 4, 5], { dead: ['n3'], dryRun: false })).rejects.toThrow('node 3 is alive');
  await expect(recover([1, 4], { dead: ['n3'], dryRun: false })).rejects.toThrow('n5 does not answer');
});

test('a machine that joined again under the name of a node that was removed is meant by that name', async () => {
  const joinedAgain = (nodeId: number) => (nodeId === 2 || nodeId === 3 ? 'same' : `n${nodeId}`);
  const found = await recover([1, 4, 5], { dead: ['same'], dryRun: true }, joinedAgain);
  expect(found).toEqual({ lost: ['2 on 1'], dead: [3, 2], asked: [] });
});

test('a node whose name is the id of another one is none of both: what is meant is given up', async () => {
  const crossed = (nodeId: number) => (nodeId === 5 ? '3' : `n${nodeId}`);
  const work = recover([1, 4, 5], { dead: ['3'], dryRun: false }, crossed);
  await expect(work).rejects.toThrow('3 is the id of n3 and the name of node 5: say n3 or 5');
});
