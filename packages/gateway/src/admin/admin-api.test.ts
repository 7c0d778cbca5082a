import { FIRST_AUTH } from '@remora/auth';
import { SeededRandom, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type CallContext,
  type CheckReport,
  type Command,
  createLocalChannel,
  createRpcRegistry,
  type Done,
  healthCondition,
  type Method,
  masterNodes,
  masterRanges,
  masterSetSetting,
  type Query,
  type RangeOverview,
  type RangeStatus,
  type RangesRequest,
  type RpcChannel,
  rangeStatus,
  rangeTransferLeader,
} from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Backend } from '../backend.ts';
import { AdminApi } from './admin-api.ts';

const CALL = { timeoutMs: 5_000, callerMs: undefined, seen: { newest: 0 }, principal: undefined };
const NODES = { clusterId: 'c', masterLeader: 1, leadingMs: 9.5, nodes: [] };
const notLeader = (leaderNode: number) => new ServiceError('NOT_LEADER', 'not here', { details: { leaderNode } });

const OWN = healthCondition('diskReserve', { nodeId: 1 }, 'no room');

const RANGE: RangeOverview = {
  descriptor: {
    rangeId: 2,
    start: new Uint8Array(0),
    end: Buffer.from('m'),
    epoch: { confVersion: 3, version: 1 },
    replicas: [1, 2, 3].map((nodeId) => ({ replicaId: 10 + nodeId, nodeId, type: 'voter' })),
    revisionSource: 'range',
  },
  leaderNode: 1,
  reports: [
    {
      nodeId: 2,
      silentMs: 7.5,
      report: {
        ...{ rangeId: 2, replicaId: 12, epoch: { confVersion: 3, version: 1 }, term: 3, applied: 4, bytes: 600 },
        ...{ silent: false, lead: undefined },
      },
    },
  ],
};

const ROOT_USER = { name: 'root', passwordHash: 'secret', roles: ['root'], version: 1 };
/** What a check says of users. */
const USERS = { authentication: true, rootUsers: ['root'] };

/** Nodes 1 to 3, of which one leads the range and one the master; both may move. */
class World {
  readonly clock = new ManualClock();
  leader = 1;
  masterAnswer: <Request>(method: string, request: Request) => unknown = () => NODES;
  /** What this node says of the cluster when no master answers. */
  withoutMasters: CheckReport | undefined;
  /** Whether a transfer that begins succeeds. */
  handsOver = true;
  readonly transfersAsked: number[] = [];
  readonly commands: Command[] = [];
  /** Does not answer at all. */
  silent: number | undefined;
  readonly api: AdminApi;

  constructor() {
    const channels = [1, 2, 3].map((nodeId) => this.#node(nodeId));
    const unknown: RpcChannel = createLocalChannel({ registry: createRpcRegistry(), clock: this.clock });
    const dialer = { channel: (id: number) => channels[id - 1] ?? unknown, channelTo: () => unknown };
    this.api = new AdminApi({
      clock: this.clock,
      random: new SeededRandom(1),
      nodes: () => [],
      dialer,
      backend: this.#backend(),
      health: {
        completed: (report) => ({ ...report, conditions: [...report.conditions, OWN] }),
        withoutMasters: () => this.withoutMasters,
      },
      known: { image: { ...FIRST_AUTH, enabled: true, users: [ROOT_USER, { ...ROOT_USER, name: 'ann', roles: [] }] } },
      master: {
        call: <Request, Reply>(method: Method<Request, Reply>, request: Request, _: unknown, done: Done<Reply>) => {
          const answer = this.masterAnswer(method.name, request);
          if (answer instanceof ServiceError) done(answer, undefined);
          else done(undefined, answer as Reply);
          return { cancel() {} };
        },
      },
    });
  }

  #node(nodeId: number): RpcChannel {
    const registry = createRpcRegistry();
    registry.handle(rangeStatus, (_request, _context: CallContext, done) => {
      if (this.silent !== nodeId) done(undefined, this.#status(nodeId));
    });
    registry.handle(rangeTransferLeader, ({ toNode }, _context, done) => {
      this.transfersAsked.push(nodeId);
      if (this.leader !== nodeId) return done(notLeader(this.leader), undefined);
      if (this.handsOver) this.leader = toNode;
      done(undefined, undefined);
    });
    return createLocalChannel({ registry, clock: this.clock });
  }

  #status(nodeId: number): RangeStatus {
    const leads = nodeId === this.leader;
    const state = (id: number) => (id === nodeId ? (leads ? 'leader' : 'follower') : leads ? 'replicate' : 'unknown');
    const matches = [90, 80, 95];
    return {
      ...{ rangeId: 2, leaderNode: this.leader, term: 3, commit: 88, applied: 88, revision: 70, compactRevision: 60 },
      ...{ bytes: 500, keys: 40, leases: 3, watches: 2 },
      replicas: [1, 2, 3].map((id) => ({
        ...{ replicaId: 10 + id, nodeId: id, match: matches[id - 1] ?? 0, commit: 88 - id, state: state(id) },
      })),
    };
  }

  #backend(): Backend {
    const unused = (): never => {
      throw new Error('not in this test');
    };
    return {
      nodeId: 1,
      command: (command, _options, done) => {
        this.commands.push(command);
        done(undefined, { result: { type: 'compact' }, revision: 70, raftTerm: 3 });
        return () => {};
      },
      query: (query: Query, _options, done) => {
        if (query.type !== 'status') return unused();
        done(undefined, { result: { type: 'status', status: this.#status(1) }, revision: 70, raftTerm: 3 });
        return () => {};
      },
      watch: unused,
      watchLocks: unused,
      view: unused,
      rangeTimeMs: unused,
      check: () => {},
    };
  }

  /** Lets virtual time pass until the call is answered. */
  async settle<T>(work: Promise<T>): Promise<T | ServiceError> {
    let settled = false;
    const result = work
      .catch((error: unknown) => error as ServiceError)
      .finally(() => {
        settled = true;
      });
    for (let i = 0; i < 2_000 && !settled; i++) {
      for (let turn = 0; turn < 8; turn++) await Promise.resolve();
      this.clock.advance(10);
    }
    return result;
  }
}

let world: World;
beforeEach(() => {
  world = new World();
});

describe('asking the master', () => {
  test('goes on over a change of leader', async () => {
    const answers: unknown[] = [notLeader(2), new ServiceError('UNAVAILABLE', 'gone'), NODES];
    world.masterAnswer = () => answers.shift();
    expect(await world.settle(world.api.listNodes({}, CALL))).toEqual({ ...NODES, leadingMs: 9 });
  });

  test('ends in its time when nobody answers, and says who was asked', async () => {
    world.masterAnswer = () => notLeader(0);
    const error = await world.settle(world.api.listNodes({}, CALL));
    expect(error).toMatchObject({
      code: 'UNAVAILABLE',
      message: "the master's leader did not answer in time: not here",
    });
    expect(world.clock.monotonicMs()).toBeLessThanOrEqual(CALL.timeoutMs + 100);
  });

  test('is not repeated when it was refused for good', async () => {
    let asked = 0;
    world.masterAnswer = (method, request) => {
      expect([method, request]).toEqual([masterSetSetting.name, { name: 'down-after', value: '5' }]);
      asked++;
      return new ServiceError('INVALID_ARGUMENT', 'expected a length of time');
    };
    const error = await world.settle(world.api.setSetting({ name: 'down-after', value: '5' }, CALL));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(asked).toBe(1);
  });

  test('a node that does not know the question is not asked again', async () => {
    world.masterAnswer = () => new ServiceError('UNIMPLEMENTED', `${masterNodes.name} is not served here`);
    expect(await world.settle(world.api.listNodes({}, CALL))).toMatchObject({ code: 'UNIMPLEMENTED' });
  });
});

describe('an upgrade', () => {
  const node = { nodeId: 1, name: 'n1', build: '0.2.0', state: 'up', min: 1, max: 2, inForce: 1 };

  test('is shown with versions as people write them; a node that was not heard has none', async () => {
    const silent = { ...node, nodeId: 2, state: 'down', min: 0, max: 0, inForce: 0 };
    world.masterAnswer = () => ({ inForce: 1, newest: 2, nodes: [node, silent], blockers: ['node 2 is down'] });
    expect(await world.settle(world.api.getUpgrade({}, CALL))).toMatchObject({
      ...{ inForce: '0.1', newest: '0.2', blockers: ['node 2 is down'] },
      nodes: [
        { id: 1, canWriteFrom: '0.1', canWriteTo: '0.2', knows: '0.1' },
        { id: 2, canWriteFrom: '', canWriteTo: '', knows: '' },
      ],
    });
  });

  test.each([
    { version: '', asked: 0 },
    { version: '0.2', asked: 2 },
    { version: '1.0', asked: 1_000 },
  ])('is finalized to "$version"', async ({ version, asked }) => {
    world.masterAnswer = (_method, request) => {
      expect(request).toEqual({ version: asked });
      return { inForce: 2, newest: 2, nodes: [], blockers: [] };
    };
    expect(await world.settle(world.api.finalizeUpgrade({ version }, CALL))).toMatchObject({ inForce: '0.2' });
  });

  test.each(['0.0', 'two', '0.2.1'])('is not finalized to "%s"', async (version) => {
    const error = await world.settle(world.api.finalizeUpgrade({ version }, CALL));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(version) });
  });
});

describe('listing ranges', () => {
  const list = () => world.settle(world.api.listRanges({ from: Buffer.of(), limit: 0, rangeId: 0n }, CALL));
  const lags = (answer: Awaited<ReturnType<typeof list>>) =>
    answer instanceof ServiceError
      ? answer
      : answer.ranges[0]?.replicas.map(({ state, logBehind, commitBehind }) => [state, logBehind, commitBehind]);

  test('shows the lag of each replica as the leader knows it, and bytes as the nodes told', async () => {
    const asked: RangesRequest[] = [];
    world.masterAnswer = (method, request) => {
      expect(method).toBe(masterRanges.name);
      asked.push(request as RangesRequest);
      return { ranges: [RANGE], more: true };
    };
    const answer = await list();
    expect(asked).toMatchObject([{ limit: 100, rangeId: 0 }]);
    expect(lags(answer)).toEqual([
      ['leader', 0, 0],
      ['replicate', 10, 1],
      ['replicate', 0, 2],
    ]);
    expect(answer).toMatchObject({
      ranges: [
        {
          ...{ id: 2, leaderNode: 1, confVersion: 3, version: 1, state: { keys: 40, revision: 70 } },
          replicas: [{ id: 11, bytes: 0, silentMs: -1 }, { id: 12, bytes: 600, silentMs: 7 }, { id: 13 }],
        },
      ],
      more: true,
    });
  });

  test.each([
    { name: 'leads no more', given: { leader: 2 } },
    { name: 'does not answer', given: { silent: 1 } },
  ])('says "unknown" when the node that is thought to lead $name', async ({ given }) => {
    Object.assign(world, given);
    world.masterAnswer = () => ({ ranges: [RANGE], more: false });
    const answer = await list();
    expect(lags(answer)).toEqual([1, 2, 3].map(() => ['unknown', -1, -1]));
    expect(answer).toMatchObject({ ranges: [{ leaderNode: 1, state: undefined }] });
  });
});

describe('the hottest ranges', () => {
  test.each(['colour', 'constructor', '__proto__'])('by %s are refused, and the master is not asked', async (by) => {
    let asked = 0;
    world.masterAnswer = () => {
      asked++;
      return { ranges: [RANGE], more: false };
    };
    const answer = await world.settle(world.api.listHotRanges({ by, limit: 0 }, CALL));
    expect(answer).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('reads, read_bytes') });
    expect(asked).toBe(0);
  });
});

describe('a transfer', () => {
  const transfer = (toNode: bigint, rangeId = 2n) => world.settle(world.api.transferLeader({ rangeId, toNode }, CALL));

  beforeEach(() => {
    world.masterAnswer = () => ({ ranges: [RANGE], more: false });
  });

  test('is asked of the leader and answered when the other one leads', async () => {
    expect(await transfer(3n)).toEqual({ fromNode: 1 });
    expect(world.transfersAsked).toEqual([1]);
    expect(world.leader).toBe(3);
  });

  test('finds the leader when the master does not know it yet', async () => {
    world.leader = 2;
    expect(await transfer(3n)).toEqual({ fromNode: 2 });
    expect(world.transfersAsked).toEqual([1, 2]);
  });

  test('says that the node leads already when the master does not know it yet', async () => {
    world.leader = 3;
    expect(await transfer(3n)).toEqual({ fromNode: 3 });
  });

  test('is not called done when leadership stays where it is', async () => {
    world.handsOver = false;
    expect(await transfer(3n)).toMatchObject({
      code: 'UNAVAILABLE',
      message: 'node 3 did not become the leader of range 2 in time; try again',
    });
  });

  test('is not called failed when the one that is to lead does not say', async () => {
    world.silent = 3;
    expect(await transfer(3n)).toMatchObject({ code: 'UNKNOWN_OUTCOME' });
    expect(world.leader).toBe(3);
  });

  test.each([
    [0n, 3n],
    [2n, -1n],
    [2n, 2n ** 60n],
  ])('of range %s to node %s is refused', async (rangeId, toNode) => {
    expect(await transfer(toNode, rangeId)).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(world.transfersAsked).toEqual([]);
  });
});

describe('a check', () => {
  const found = healthCondition('noLeader', { rangeId: 2 }, 'range 2 has no leader');
  const check = () => world.settle(world.api.checkCluster({}, CALL));

  test('tells what the masters find, and what the node knows better', async () => {
    world.masterAnswer = () => ({ nodes: 3, ranges: 1, conditions: [found] });
    expect(await check()).toEqual({ nodes: 3, ranges: 1, conditions: [found, OWN], ...USERS });
  });

  test('tells what the node knows when the masters have no leader', async () => {
    world.masterAnswer = () => notLeader(0);
    world.withoutMasters = { nodes: 3, ranges: 0, conditions: [healthCondition('noMasters', {}, '1 of 3')] };
    expect(await check()).toEqual({ ...world.withoutMasters, ...USERS });
  });

  test('fails when the masters do not answer it, although they answer the node', async () => {
    world.masterAnswer = () => notLeader(0);
    expect(await check()).toMatchObject({ code: 'UNAVAILABLE' });
  });
});

describe('a compaction', () => {
  test('goes up to the newest revision unless one is given', async () => {
    expect(await world.settle(world.api.compact({ revision: 0n }, CALL))).toEqual({ revision: 70 });
    expect(await world.settle(world.api.compact({ revision: 33n }, CALL))).toEqual({ revision: 33 });
    expect(world.commands).toEqual([
      { type: 'compact', revision: 70 },
      { type: 'compact', revision: 33 },
    ]);
  });
});
