import { SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type {
  AuthImage,
  ClusterView,
  NodeTask,
  RangeDescriptor,
  RpcChannel,
  RpcDialer,
  SplitPolicy,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { descriptor } from '../../test/support/descriptor.ts';
import { MasterFinder } from '../masters/master-finder.ts';
import { NodeAgent } from './agent.ts';

const VIEW: ClusterView = { clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 2 };
const TASK = { type: 'createReplica', descriptor: {}, replicaId: 5 } as unknown as NodeTask;

const SPLITS = { automatic: true } as SplitPolicy;

type Reply = ServiceError | unknown;

/** Answers calls as a script says: by node, the method's name and how often it was asked. */
class AgentBed {
  readonly clock = new ManualClock();
  readonly calls: string[] = [];
  readonly tasks: NodeTask[] = [];
  readonly policies: SplitPolicy[] = [];
  readonly versions: (number | undefined)[] = [];
  readonly auth: { readonly image: AuthImage | undefined; readonly sentMs: number }[] = [];
  changed: readonly RangeDescriptor[] = [];
  readonly warnings: Readonly<Record<string, unknown>>[] = [];
  refused: string | undefined;
  answer: (node: number, method: string) => Reply = () => new ServiceError('UNAVAILABLE', 'nobody there');
  readonly agent: NodeAgent;

  constructor(masters: readonly number[] = [1, 2, 3]) {
    const channel = (node: number): RpcChannel =>
      ({
        call: (
          method: { readonly name: string },
          _request: unknown,
          _options: unknown,
          done: (e: unknown, r: unknown) => void,
        ) => {
          this.calls.push(`${node}:${method.name}`);
          const reply = this.answer(node, method.name);
          this.clock.setTimer(1, () =>
            reply instanceof ServiceError ? done(reply, undefined) : done(undefined, reply),
          );
          return { cancel() {} };
        },
      }) as unknown as RpcChannel;
    const dialer: RpcDialer = { channel, channelTo: (address) => channel(Number(address)) };
    this.agent = new NodeAgent(
      {
        finder: new MasterFinder({
          clock: this.clock,
          dialer,
          seeds: ['7', '8'],
          masters,
          reachable: (node) => masters.includes(node),
        }),
        clock: this.clock,
        random: new SeededRandom(1),
        logger: { ...silentLogger, warn: (fields) => this.warnings.push(fields) },
        report: () => ({
          space: { capacityBytes: 0, availableBytes: 0 },
          labels: {},
          hasMaster: true,
          ranges: [],
          results: [],
          conditions: [],
          authRevision: 4,
        }),
        changedSince: () => this.changed,
        onTask: (task) => this.tasks.push(task),
        onView: () => {},
        onSplitPolicy: (policy) => this.policies.push(policy),
        onClocks: () => {},
        onVersion: (version) => this.versions.push(version),
        onConditions: () => {},
        onAuth: (image, sentMs) => this.auth.push({ image, sentMs }),
        onRefused: (error) => {
          this.refused = error.code;
        },
      },
      descriptor(masters.length === 0 ? 0 : 1),
    );
  }
}

const ok = (method: string): Reply =>
  method === 'master.join'
    ? { nodeId: 1, clusterId: 'c' }
    : { tasks: [TASK], view: VIEW, incarnations: [], splits: SPLITS };

describe('a node agent', () => {
  test('asks one master after the other until one answers, then follows it to the leader', () => {
    const bed = new AgentBed();
    bed.answer = (node, method) => {
      if (node === 1 || node === 7) return new ServiceError('UNAVAILABLE', 'down');
      if (node === 3) return ok(method);
      return new ServiceError('NOT_LEADER', 'not me', { details: { leaderNode: 3 } });
    };
    bed.agent.start();
    bed.clock.advance(300);
    expect(bed.calls.slice(0, 4)).toEqual(['1:master.join', '7:master.join', '2:master.join', '3:master.join']);
    expect(bed.agent.joined).toBe(true);
    expect(bed.tasks.length).toBeGreaterThan(0);
    expect(bed.policies[0]).toBe(SPLITS);
  });

  test('reports often until a range has a leader, then every second, and four times as often while it has tasks', () => {
    const bed = new AgentBed();
    let reply = { tasks: [TASK], view: VIEW, incarnations: [], splits: SPLITS };
    bed.answer = (_node, method) => (method === 'master.join' ? ok(method) : reply);
    const beatsIn = (ms: number): number => {
      const before = bed.calls.length;
      bed.clock.advance(ms);
      return bed.calls.length - before;
    };
    bed.agent.start();
    expect(beatsIn(1_000)).toBeGreaterThan(15);
    reply = { ...reply, view: { ...VIEW, leaders: [[2, 1]] } };
    bed.clock.advance(100);
    expect(beatsIn(10_000)).toBeLessThanOrEqual(40);
    reply = { ...reply, tasks: [] };
    bed.clock.advance(300);
    expect(beatsIn(10_000)).toBeLessThanOrEqual(10);
  });

  test('asks the masters at once when it is hurried, and ten times in a second however often it is', () => {
    const bed = new AgentBed();
    const view = { ...VIEW, leaders: [[2, 1]] as const };
    bed.answer = (_node, method) =>
      method === 'master.join' ? ok(method) : { tasks: [], view, incarnations: [], splits: SPLITS };
    bed.agent.start();
    bed.clock.advance(1_900);
    const before = bed.calls.length;
    bed.agent.hurry();
    bed.clock.advance(10);
    expect(bed.calls.length).toBe(before + 1);
    for (let ms = 0; ms < 1_000; ms++) {
      bed.agent.hurry();
      bed.clock.advance(1);
    }
    expect(bed.calls.length - before).toBeLessThanOrEqual(12);
    expect(bed.calls.length - before).toBeGreaterThan(8);
  });

  test('takes users and roles with the time at which it asked, and confirms new ones soon', () => {
    const bed = new AgentBed();
    const image: AuthImage = { enabled: true, revision: 9, users: [], roles: [], tokenKey: Buffer.of(1) };
    const reply = { tasks: [], view: { ...VIEW, leaders: [[2, 1]] as const }, incarnations: [], splits: SPLITS };
    let auth: AuthImage | undefined;
    bed.answer = (_node, method) => {
      if (method === 'master.join') return ok(method);
      const answer = { ...reply, auth };
      auth = undefined;
      return answer;
    };
    bed.agent.start();
    bed.clock.advance(1_500);
    expect(bed.auth.every((one) => one.image === undefined)).toBe(true);
    expect(bed.auth.at(-1)?.sentMs).toBeLessThanOrEqual(bed.clock.monotonicMs() - 1);
    auth = image;
    for (let ms = 0; bed.auth.at(-1)?.image === undefined && ms < 2_000; ms++) bed.clock.advance(1);
    const before = bed.auth.length;
    bed.clock.advance(110);
    expect(bed.auth).toHaveLength(before + 1);
  });

  test('a node that joins goes to the address that a follower names, as it knows no node by its id', () => {
    const bed = new AgentBed([]);
    bed.answer = (node, method) => {
      if (node === 9) return ok(method);
      return new ServiceError('NOT_LEADER', 'not me', { details: { leaderNode: 2, leaderAddress: '9' } });
    };
    bed.agent.start();
    bed.clock.advance(300);
    expect(bed.calls.slice(0, 2)).toEqual(['7:master.join', '9:master.join']);
    expect(bed.agent.joined).toBe(true);
  });

  test('a node that waits for a master says so every ten seconds, until one answers', async () => {
    const bed = new AgentBed([]);
    const asked = bed.agent.requestId(new AbortController().signal);
    bed.clock.advance(25_000);
    const common = { asked: ['7', '8'], error: 'nobody there' };
    expect(bed.warnings).toEqual([
      { ...common, seconds: 10 },
      { ...common, seconds: 20 },
    ]);
    bed.answer = (_node, method) => ok(method);
    bed.clock.advance(300);
    expect((await asked).nodeId).toBe(1);
    bed.clock.advance(30_000);
    expect(bed.warnings).toHaveLength(2);
  });

  test('a node that joins asks every seed in turn while none names a leader', () => {
    const bed = new AgentBed([]);
    bed.answer = (node, method) =>
      node === 8 ? ok(method) : new ServiceError('NOT_LEADER', 'nobody leads', { details: { leaderNode: 0 } });
    bed.agent.start();
    bed.clock.advance(300);
    expect(bed.agent.joined).toBe(true);
  });

  test('masters that name each other are asked with growing pauses, never in a storm', () => {
    const bed = new AgentBed();
    bed.answer = (node) => new ServiceError('NOT_LEADER', 'not me', { details: { leaderNode: node === 1 ? 2 : 1 } });
    bed.agent.start();
    bed.clock.advance(10_000);
    expect(bed.calls.length).toBeLessThan(90);
    expect(bed.calls.length).toBeGreaterThan(8);
  });

  test('tells the master of a range whose membership has changed, until the master shows that it knows', () => {
    const bed = new AgentBed([2]);
    bed.answer = (_node, method) =>
      method === 'master.rangeChanged' ? new ServiceError('UNAVAILABLE', 'lost') : ok(method);
    bed.changed = [{ rangeId: 2 } as RangeDescriptor];
    bed.agent.start();
    bed.clock.advance(200);
    const told = bed.calls.filter((call) => call === '2:master.rangeChanged').length;
    expect(told).toBeGreaterThan(1);
    bed.changed = [];
    bed.clock.advance(200);
    expect(bed.calls.filter((call) => call === '2:master.rangeChanged').length).toBe(told);
  });

  test('joins again when the master does not know it', () => {
    const bed = new AgentBed();
    let forgotten = true;
    bed.answer = (_node, method) => {
      if (method === 'master.join' || !forgotten) return ok(method);
      forgotten = false;
      return new ServiceError('INVALID_ARGUMENT', 'who?', { details: { join: true } });
    };
    bed.agent.start();
    bed.clock.advance(2_000);
    expect(bed.calls.map((call) => call.split(':')[1]).slice(0, 4)).toEqual([
      'master.join',
      'master.heartbeat',
      'master.join',
      'master.heartbeat',
    ]);
  });

  test.each(['master.join', 'master.heartbeat'])('that is refused at %s says so and asks no more', (refusing) => {
    const bed = new AgentBed();
    bed.answer = (_node, method) => (method === refusing ? new ServiceError('NODE_CONFLICT', 'wiped') : ok(method));
    bed.agent.start();
    bed.clock.advance(5_000);
    expect(bed.refused).toBe('NODE_CONFLICT');
    const { length } = bed.calls;
    bed.clock.advance(5_000);
    expect(bed.calls.length).toBe(length);
  });

  test('without masters asks the seeds for an id, in turn', async () => {
    const bed = new AgentBed([]);
    bed.answer = (node, method) => (node === 8 ? ok(method) : new ServiceError('UNAVAILABLE', 'down'));
    const reply = bed.agent.requestId(new AbortController().signal);
    bed.clock.advance(1_000);
    expect(await reply).toEqual({ nodeId: 1, clusterId: 'c' });
    expect(bed.calls).toEqual(['7:master.join', '8:master.join']);
  });

  test('does nothing any more once it is stopped, not even with an answer that comes later', () => {
    const bed = new AgentBed();
    bed.answer = (_node, method) => ok(method);
    bed.agent.start();
    bed.clock.advance(1);
    bed.agent.stop();
    bed.clock.advance(5_000);
    expect(bed.tasks).toEqual([]);
    expect(bed.clock.pendingTimers).toBe(0);
  });
});
