import { assert, InvariantError, type ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type ActivityReply,
  ANONYMOUS_CALLER,
  type AskSplitReply,
  type AuthChange,
  type AuthRevision,
  type Caller,
  type ClusterView,
  createLocalChannel,
  createRpcRegistry,
  type DrawRevisionsReply,
  type JoinReply,
  type JoinRequest,
  type LeaderReport,
  masterActivity,
  masterAskSplit,
  masterAwaitAuth,
  masterChangeAuth,
  masterDrawRevisions,
  masterHeartbeat,
  masterJoin,
  masterNodes,
  masterOperators,
  masterRangeChanged,
  masterSetNodeDuty,
  masterSetSetting,
  masterView,
  type NodeHeartbeatReply,
  type NodesOverview,
  type OrderResult,
  type RangeDescriptor,
  type RangeReport,
} from '@remora/protocol';
import type { Entry, Group, GroupStatus, Refusal } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { CONF, descriptor } from '../test/support/descriptor.ts';
import { Master } from './master.ts';
import { MasterState } from './metadata/master-state.ts';
import { encodeMasterImage } from './metadata/metadata-codec.ts';
import { refusal } from './term/proposals.ts';

const STATUS = { conf: CONF, changePending: false, progress: [] } as unknown as GroupStatus;

/** One master, and a log that the test commits. */
class MasterBed {
  readonly clock = new ManualClock();
  readonly master: Master;
  readonly registry = createRpcRegistry();
  readonly proposed: Entry[] = [];
  saved: Uint8Array | undefined;
  term = 1;
  /** What waits to hear that this master leads; undefined: that is known at once. */
  reads: ((refused: Refusal | undefined) => void)[] | undefined;
  #index: number;

  constructor(nodeId = 1, saved?: Uint8Array) {
    this.master = new Master(
      {
        nodeId,
        clusterId: 'c',
        shownClusterId: 'shown',
        founderNames: ['n1', 'n2', 'n3', 'n4'],
        clock: this.clock,
        logger: silentLogger,
        options: { replicas: 3, revisionWindow: 100 },
        storage: {
          load: () => saved,
          save: (bytes) => {
            this.saved = bytes;
          },
        },
        checkpoint: async () => {},
        onLeft() {},
      },
      CONF,
    );
    this.#index = this.master.state.applied.index;
    const propose = (data: Uint8Array) => {
      const entry = { index: ++this.#index, term: this.term, type: 'normal' as const, data };
      this.proposed.push(entry);
      return { index: entry.index, term: entry.term };
    };
    const bed = this;
    this.master.attach({
      propose,
      ready: true,
      status: () => STATUS,
      role: 'leader',
      get term() {
        return bed.term;
      },
      leaseRead: (done: (refused: Refusal | undefined) => void) => {
        if (bed.reads === undefined) done(undefined);
        else bed.reads.push(done);
      },
    } as Partial<Group> as Group);
    this.master.register(this.registry);
  }

  lead(term: number): void {
    this.term = term;
    this.master.roleChanged({ role: 'leader', term, leader: 1 });
  }

  commit(): void {
    this.master.apply(this.proposed.splice(0), CONF);
  }

  join(nodeId: number, more: Parameters<typeof descriptor>[1] = {}) {
    const { nodeId: id, ...rest } = descriptor(nodeId, more);
    return call<unknown, JoinReply>(this, masterJoin as never, { nodeId: id, descriptor: rest });
  }

  /** As it comes over a link. */
  joinAs(caller: Caller, request: JoinRequest): Answer<JoinReply> {
    return this.#callAs<JoinReply>(caller, masterJoin.name, request);
  }

  #callAs<Reply>(caller: Caller, method: string, request: unknown): Answer<Reply> {
    const answer: Answer<Reply> = { answered: false, code: undefined, error: undefined, reply: undefined };
    const served = this.registry.lookup(method);
    assert(served?.kind === 'call', `a master serves ${method}`);
    served.handler(request, { caller, onCancel() {} }, (error, reply) =>
      Object.assign(answer, { answered: true, code: error?.code, error, reply }),
    );
    return answer;
  }

  changed(range: RangeDescriptor): Answer<undefined> {
    return call<RangeDescriptor, undefined>(this, masterRangeChanged as never, range);
  }

  beat(
    nodeId: number,
    ranges: readonly RangeReport[] = [],
    incarnation = `dir${nodeId}`,
    results: readonly OrderResult[] = [],
    authRevision = 0,
    caller: Caller = nodeId === 1 ? { kind: 'local' } : { kind: 'node', nodeId },
  ) {
    const space = { capacityBytes: 1_000, availableBytes: 900 };
    const said = { ranges, results, conditions: [], authRevision };
    const heartbeat = { nodeId, incarnation, space, labels: {}, hasMaster: true, ...said };
    return this.#callAs<NodeHeartbeatReply>(caller, masterHeartbeat.name, heartbeat);
  }

  askSplit(range: RangeDescriptor): Answer<AskSplitReply> {
    return call<unknown, AskSplitReply>(this, masterAskSplit as never, { range, at: undefined, cause: 'size' });
  }

  draw(count: number, floor = 0) {
    const request = { floor, draws: [{ rangeId: 2, count }] };
    return call<unknown, DrawRevisionsReply>(this, masterDrawRevisions as never, request);
  }
}

const LEAD: LeaderReport = {
  ...{ keys: 0, logEntries: 0, joint: false, changePending: false, peers: [], sizeRemark: '' },
  ...{ readsPerS: 0, readBytesPerS: 0, writesPerS: 0, writeBytesPerS: 0 },
};

function reportOf(replicaId: number, more: Partial<RangeReport> = {}): RangeReport {
  const epoch = { confVersion: 1, version: 1 };
  return { rangeId: 2, replicaId, epoch, term: 4, applied: 1, bytes: 0, silent: false, lead: undefined, ...more };
}

const learner = (replicaId: number, nodeId: number) => ({ replicaId, nodeId, type: 'learner' as const });

interface Answer<Reply> {
  answered: boolean;
  code: string | undefined;
  error: ServiceError | undefined;
  reply: Reply | undefined;
}

function call<Request, Reply>(bed: MasterBed, method: never, request: Request): Answer<Reply> {
  const answer: Answer<Reply> = { answered: false, code: undefined, error: undefined, reply: undefined };
  createLocalChannel({ registry: bed.registry, clock: bed.clock }).call<Request, Reply>(
    method,
    request,
    { timeoutMs: 1_000 },
    (error, reply) => Object.assign(answer, { answered: true, code: error?.code, error, reply }),
  );
  return answer;
}

function ready(bed: MasterBed): MasterBed {
  bed.lead(1);
  for (const id of [1, 2, 3]) bed.join(id);
  bed.commit();
  for (const id of [1, 2, 3]) bed.beat(id);
  return bed;
}

describe('a master', () => {
  test('that does not lead says who does, and nothing else', () => {
    const bed = new MasterBed(1);
    bed.master.roleChanged({ role: 'follower', term: 2, leader: 3 });
    for (const answer of [
      bed.join(1),
      bed.beat(1),
      call<undefined, ClusterView>(bed, masterView as never, undefined),
      bed.draw(1),
    ]) {
      expect(answer.code).toBe('NOT_LEADER');
      expect(answer.error?.details).toMatchObject({ leaderNode: 3 });
    }
  });

  test('asks a node that it does not know to join, and refuses one whose data was wiped', () => {
    const bed = ready(new MasterBed());
    expect(bed.beat(9).error?.details).toEqual({ join: true });
    expect(bed.beat(2, [], 'wiped').code).toBe('NODE_CONFLICT');
    expect(bed.join(2, { incarnation: 'wiped' }).code).toBe('NODE_CONFLICT');
  });

  test.each<{ name: string; caller: Caller; nodeId: number; as?: string; expect: string }>([
    { name: 'a new node', caller: ANONYMOUS_CALLER, nodeId: 0, expect: 'ok' },
    { name: 'nobody, for the id of a member', caller: ANONYMOUS_CALLER, nodeId: 3, expect: 'UNAVAILABLE' },
    { name: 'nobody, for an id that is free', caller: ANONYMOUS_CALLER, nodeId: 4, expect: 'UNAVAILABLE' },
    { name: 'one node, for another', caller: { kind: 'node', nodeId: 2 }, nodeId: 4, expect: 'UNAVAILABLE' },
    { name: 'a node, for itself', caller: { kind: 'node', nodeId: 4 }, nodeId: 4, expect: 'ok' },
    { name: 'a founder under its name', caller: { kind: 'node', nodeId: 4 }, nodeId: 4, as: 'n4', expect: 'ok' },
    { name: 'a founder, in this process', caller: { kind: 'local' }, nodeId: 4, as: 'n4', expect: 'ok' },
    { name: 'one that is not verified', caller: { kind: 'joiner', claims: 4 }, nodeId: 4, expect: 'UNAVAILABLE' },
    { name: 'the highest such id', caller: { kind: 'joiner', claims: 1_000 }, nodeId: 1_000, expect: 'UNAVAILABLE' },
    { name: 'an id not given out', caller: { kind: 'joiner', claims: 1_001 }, nodeId: 1_001, expect: 'NODE_CONFLICT' },
    { name: 'nobody, under a name', caller: ANONYMOUS_CALLER, nodeId: 0, as: 'n4', expect: 'NODE_CONFLICT' },
    { name: 'a node, under a name', caller: { kind: 'node', nodeId: 5 }, nodeId: 5, as: 'n4', expect: 'NODE_CONFLICT' },
  ])(
    'registers a caller only under the id that it presented: $name (SV2)',
    ({ caller, nodeId, as = 'x', expect: is }) => {
      const bed = ready(new MasterBed());
      const { nodeId: _, ...rest } = descriptor(nodeId, { name: as, incarnation: 'a new one' });
      const answer = bed.joinAs(caller, { nodeId, descriptor: rest });
      bed.commit();
      expect(answer.code ?? 'ok').toBe(is);
      const taken = bed.master.state.nodes().some(({ incarnation }) => incarnation === 'a new one');
      expect(taken).toBe(is === 'ok');
    },
  );

  test('takes no more than a thousand nodes: strangers may join (SV3)', () => {
    const bed = ready(new MasterBed());
    const join = (i: number) => {
      const answer = bed.join(0, { name: `x${i}`, incarnation: `x${i}` });
      bed.commit();
      return answer.code ?? 'ok';
    };
    const answers = Array.from({ length: 1_000 }, (_, i) => join(i));
    expect(new Set(answers.slice(0, 997))).toEqual(new Set(['ok']));
    expect(new Set(answers.slice(997))).toEqual(new Set(['RESOURCE_EXHAUSTED']));
    bed.master.state.apply({ type: 'setDuty', nodeId: 1_001, duty: 'removed', untilMs: 0 });
    expect(join(1_001)).toBe('ok');
  });

  test('counts the nodes whose registration is under way (SV3)', () => {
    const bed = ready(new MasterBed());
    const answers = Array.from({ length: 1_000 }, (_, i) => bed.join(0, { name: `x${i}`, incarnation: `x${i}` }));
    bed.commit();
    expect(answers.map(({ code }) => code ?? 'ok')).toEqual([
      ...Array(997).fill('ok'),
      ...Array(3).fill('RESOURCE_EXHAUSTED'),
    ]);
  });

  test('answers a node that joins as it is registered without a proposal, once it is known to lead (SV4)', () => {
    const bed = ready(new MasterBed());
    bed.commit();
    const [known, again] = [bed.join(3), bed.join(0, { ...descriptor(3), nodeId: 0 })];
    expect([known.reply?.nodeId, again.reply?.nodeId]).toEqual([3, 3]);
    expect(bed.proposed).toEqual([]);
    bed.reads = [];
    const asked = bed.join(3);
    expect(asked.answered).toBe(false);
    bed.reads.splice(0)[0]?.('notLeader');
    expect(asked.code).toBe('NOT_LEADER');
  });

  test.each(['peerAddress', 'clientAddress', 'httpAddress', 'version'] as const)(
    'registers a node anew whose %s is another one (SV4)',
    (field) => {
      const bed = ready(new MasterBed());
      bed.commit();
      expect(bed.join(3, { [field]: 'another:1' }).answered).toBe(false);
      bed.commit();
      expect(bed.master.state.node(3)?.[field]).toBe('another:1');
    },
  );

  test('proposes few registrations of strangers at a time and per second, and says when to try again (SV4)', () => {
    const bed = ready(new MasterBed());
    bed.commit();
    let count = 0;
    const flood = () =>
      Array.from({ length: 200 }, () => {
        const { nodeId, ...rest } = descriptor(0, { name: `x${++count}`, incarnation: `x${count}` });
        return bed.joinAs(ANONYMOUS_CALLER, { nodeId, descriptor: rest });
      });
    const first = flood();
    expect(bed.proposed).toHaveLength(20);
    expect(first.filter(({ code }) => code === 'RESOURCE_EXHAUSTED')).toHaveLength(180);
    expect(first.at(-1)?.error?.message).toMatch('try again');
    bed.commit();
    flood();
    expect(bed.proposed).toHaveLength(20);
    bed.commit();
    flood();
    expect(bed.proposed).toEqual([]); // none are under way, but the rate is used up
    bed.clock.advance(500);
    flood();
    expect(bed.proposed).toHaveLength(10);
    // Nodes that are known do not wait for strangers.
    const { nodeId, ...rest } = descriptor(3, { peerAddress: 'another:1' });
    bed.joinAs({ kind: 'node', nodeId: 3 }, { nodeId, descriptor: rest });
    expect(bed.proposed).toHaveLength(11);
  });

  test('that went on alone takes nodes under ids it does not know, within the bounds of others (SV2, SV3, M10)', () => {
    const bed = ready(new MasterBed());
    bed.master.state.goOnAlone();
    const join = (nodeId: number, name = `x${nodeId}`) => {
      const { nodeId: _, ...rest } = descriptor(nodeId, { name });
      const answer = bed.joinAs({ kind: 'joiner', claims: nodeId }, { nodeId, descriptor: rest });
      bed.commit();
      bed.clock.advance(100);
      return answer.code ?? 'ok';
    };
    expect([join(1_001), join(1_001), join(1_002, 'n4')]).toEqual(['ok', 'ok', 'NODE_CONFLICT']);
    const answers = Array.from({ length: 1_000 }, (_, i) => join(1_003 + i));
    expect(answers.filter((answer) => answer === 'ok').length).toBe(996);
    expect(answers.slice(996)).toEqual(Array(4).fill('RESOURCE_EXHAUSTED'));
  });

  test('tells clients and joiners of nodes without their incarnations, and nodes with them', () => {
    const bed = ready(new MasterBed());
    bed.master.state.apply({ type: 'setDuty', nodeId: 2, duty: 'removed', untilMs: 0 });
    const view = call<undefined, ClusterView>(bed, masterView as never, undefined).reply;
    expect(view?.clusterId).toBe('shown');
    expect(JSON.stringify(view)).not.toContain('dir1');
    expect(bed.beat(1).reply?.incarnations).toEqual([
      [1, 'dir1'],
      [3, 'dir3'],
    ]);
  });

  test('refuses no node by what a later leader may know better: one that ends never asks again (SV1)', () => {
    const bed = ready(new MasterBed());
    bed.reads = [];
    const given = bed.join(1_001); // by the leader after this one
    const renewed = bed.join(0, { name: 'n3', incarnation: 'new' }); // n3 was removed there
    expect([given.answered, renewed.answered]).toEqual([false, false]);
    for (const deposed of bed.reads.splice(0)) deposed('notLeader');
    expect([given.code, renewed.code]).toEqual(['NOT_LEADER', 'NOT_LEADER']);
  });

  test('refuses a node by what it knows once it is known to lead, and takes one that fits by then (SV1)', () => {
    const bed = ready(new MasterBed());
    bed.reads = [];
    const unknown = bed.join(1_001);
    const renewed = bed.join(0, { name: 'n3', incarnation: 'new' });
    bed.master.state.apply({ type: 'setDuty', nodeId: 3, duty: 'removed', untilMs: 0 });
    for (const leads of bed.reads.splice(0)) leads(undefined);
    expect(unknown.code).toBe('NODE_CONFLICT');
    expect(renewed.answered).toBe(false);
    bed.commit();
    expect(renewed.reply?.nodeId).toBe(1_001);
  });

  test('tells people nothing that a later leader may know better (M6)', () => {
    const bed = ready(new MasterBed());
    const ask = () => [
      call(bed, masterSetNodeDuty as never, { nodeId: 2, duty: 'serving', forMs: 0 }),
      call(bed, masterSetSetting as never, { name: 'down-after', value: '' }),
      call(bed, masterOperators as never, { rangeId: 0, activeOnly: true }),
      call(bed, masterNodes as never, undefined),
    ];
    expect(ask().map(({ code, answered }) => [code, answered])).toEqual(Array(4).fill([undefined, true]));
    bed.reads = [];
    const asked = ask();
    expect(asked.some(({ answered }) => answered)).toBe(false);
    for (const deposed of bed.reads.splice(0)) deposed('notLeader');
    expect(asked.map(({ code }) => code)).toEqual(Array(4).fill('NOT_LEADER'));
  });

  test('creates the first range once three data nodes are up, and only one', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(1_000);
    expect(bed.proposed.length).toBe(1);
    bed.commit();
    bed.clock.advance(1_000);
    expect(bed.proposed.length).toBe(0);
    expect(bed.master.state.ranges().map((r) => r.replicas.map((replica) => replica.nodeId))).toEqual([[1, 2, 3]]);
  });

  test('two leaders that both propose the first range create one', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(100);
    bed.lead(2);
    for (const id of [1, 2, 3]) bed.beat(id);
    bed.clock.advance(100);
    expect(bed.proposed.length).toBe(2);
    bed.commit();
    bed.clock.advance(1_000);
    expect(bed.proposed.length).toBe(0);
    expect(bed.master.state.ranges().length).toBe(1);
  });

  test('repeats a task until the node reports it done, and gives it to nobody else', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(100);
    bed.commit();
    const task = { type: 'createReplica', replicaId: 1_002 };
    for (let i = 0; i < 3; i++) expect(bed.beat(2).reply?.tasks).toMatchObject([task]);
    const report = reportOf(1_002, { lead: LEAD });
    expect(bed.beat(2, [report]).reply?.tasks).toEqual([]);
    bed.join(0, { name: 'x', incarnation: 'x' });
    bed.commit();
    expect(bed.beat(1_001, [], 'x').reply?.tasks).toEqual([]);
    // Of two that claim to lead, the later term is believed.
    bed.beat(1, [{ ...report, replicaId: 1_001, term: 3 }]);
    expect(bed.beat(3).reply?.view?.leaders).toEqual([[2, 2]]);
  });

  test('has the next replica of a range created where an earlier one is, which makes way', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(100);
    bed.commit();
    const [range] = bed.master.state.ranges();
    if (range === undefined) throw new Error('there is a range');
    const others = range.replicas.filter(({ nodeId }) => nodeId !== 2);
    bed.changed({ ...range, epoch: { confVersion: 4, version: 1 }, replicas: [...others, learner(1_009, 2)] });
    bed.commit();
    const tasks = [
      { type: 'createReplica', replicaId: 1_009 },
      { type: 'removeReplica', replicaId: 1_002 },
    ];
    expect(bed.beat(2, [reportOf(1_002)]).reply?.tasks).toMatchObject(tasks);
    expect(bed.beat(2, [reportOf(1_009)]).reply?.tasks).toEqual([]);
  });

  test('tells a replica that was removed that it does not belong, whether it asks or not', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(100);
    bed.commit();
    const [range] = bed.master.state.ranges();
    if (range === undefined) throw new Error('there is a range');
    const left = range.replicas.filter(({ nodeId }) => nodeId !== 2);
    bed.changed({ ...range, epoch: { confVersion: 4, version: 1 }, replicas: left });
    bed.commit();
    const asks = (replicaId: number, confVersion: number, silent = true) =>
      bed.beat(2, [reportOf(replicaId, { silent, epoch: { confVersion, version: 1 } })]).reply?.tasks;
    const no = { type: 'removeReplica', rangeId: 2, replicaId: 1_002, confVersion: 4 };
    expect(asks(1_002, 3)).toEqual([no]);
    expect(asks(1_002, 3, false)).toEqual([no]);
    expect(asks(1_002, 4)).toEqual([]); // what it knows is as new
    expect(asks(1_001, 3)).toEqual([]); // it belongs
    expect(asks(1_009, 5)).toEqual([]); // it joined since
  });

  test('sends what is decided on a range with the answer to its leader, and tells how it came out', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(100);
    bed.commit();
    const ended: string[] = [];
    bed.master.orders.directBy({
      reported: ({ report }) => ({ type: 'demote', replicaId: report.replicaId + 1 }),
      ended: (rangeId, { type }, { outcome }) => void ended.push(`${rangeId} ${type} ${outcome}`),
    });
    const [task] = bed.beat(1, [reportOf(1_001, { lead: LEAD })]).reply?.tasks ?? [];
    expect(task).toMatchObject({ order: { confVersion: 1, instruction: { type: 'demote', replicaId: 1_002 } } });
    const orderId = task?.type === 'order' ? task.order.orderId : 0;
    bed.beat(1, [reportOf(1_001)], 'dir1', [{ orderId, outcome: 'underWay', reason: '' }]);
    expect(ended).toEqual(['2 demote underWay']);
  });

  test('has ids for new replicas at hand, which no later leader gives again', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(100);
    bed.commit();
    expect(bed.master.replicaIds.next()).toBeUndefined();
    bed.commit();
    expect([1, 2].map(() => bed.master.replicaIds.next())).toEqual([1_004, 1_005]);
    bed.lead(2);
    bed.master.replicaIds.next();
    bed.commit();
    expect(bed.master.replicaIds.next()).toBeGreaterThan(1_005);
  });

  test('gives out the ids of a split once they are replicated, the same ones to whoever asks again', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(100);
    bed.commit();
    const [range] = bed.master.state.ranges();
    if (range === undefined) throw new Error('there is a range');
    const first = bed.askSplit(range);
    expect(first.answered).toBe(false);
    bed.commit();
    expect(first.reply).toEqual({
      childId: 3,
      replicas: [1, 2, 3].map((nodeId) => ({ nodeId, replicaId: 1_003 + nodeId })),
    });
    const again = bed.askSplit(range);
    bed.commit();
    expect(again.reply).toEqual(first.reply);
    bed.changed({ ...range, end: Buffer.from('m'), epoch: { confVersion: 1, version: 2 } });
    bed.commit();
    expect(bed.master.state.ranges().map(({ rangeId }) => rangeId)).toEqual([2, 3]);
    const late = bed.askSplit(range);
    bed.commit();
    expect(late.code).toBe('STALE_EPOCH');
  });

  test('has a node that was removed stop, whatever it says', () => {
    const bed = ready(new MasterBed());
    bed.master.state.apply({ type: 'setDuty', nodeId: 3, duty: 'removed', untilMs: 0 });
    expect(bed.beat(3).code).toBe('NODE_CONFLICT');
    expect(bed.join(3).error?.message).toMatch('was removed from the cluster');
    expect(bed.beat(1).reply?.view?.nodes.map(({ state }) => state)).toEqual(['up', 'up', 'removed']);
    bed.master.state.apply({ type: 'setDuty', nodeId: 2, duty: 'draining', untilMs: 0 });
    expect(bed.beat(1).reply?.view?.nodes.map(({ state }) => state)).toEqual(['up', 'draining', 'removed']);
  });

  test('has nothing written when it is told of a membership that it knows', () => {
    const bed = ready(new MasterBed());
    bed.clock.advance(100);
    bed.commit();
    const [range] = bed.master.state.ranges();
    if (range === undefined) throw new Error('there is a range');
    expect(bed.changed(range).answered).toBe(true);
    expect(bed.proposed).toEqual([]);
    const later = { ...range, epoch: { confVersion: 2, version: 1 } };
    expect(bed.changed(later).answered).toBe(false);
    expect(bed.proposed).toHaveLength(1);
  });

  test('answers every join, also when leadership goes or changes under it (M5)', () => {
    const bed = new MasterBed();
    bed.lead(1);
    const first = bed.join(1);
    bed.lead(3);
    expect(first.code).toBe('UNKNOWN_OUTCOME');
    const second = bed.join(2);
    bed.master.roleChanged({ role: 'follower', term: 4, leader: 2 });
    expect(second.code).toBe('UNKNOWN_OUTCOME');
    bed.commit();
    expect(bed.master.state.nodes().map((node) => node.nodeId)).toEqual([1, 2]);
  });

  test('that is restored gives out revisions above all that it gave out before, and above the floors it was told', () => {
    const bed = ready(new MasterBed());
    bed.commit();
    const before = bed.draw(3, 5_000);
    expect(before.reply).toBeUndefined();
    bed.commit();
    expect(before.reply?.blocks).toEqual([{ rangeId: 2, first: 5_001, count: 3 }]);
    bed.master.stage();
    const again = new MasterBed(1, bed.saved);
    again.lead(2);
    const after = again.draw(1);
    again.commit();
    expect(after.reply?.blocks[0]?.first).toBeGreaterThan(5_003);
  });

  test('takes a heartbeat only from the node that it is about (SV5)', () => {
    const bed = new MasterBed();
    bed.lead(2);
    for (const nodeId of [1, 2]) {
      bed.join(nodeId);
      bed.commit();
    }
    const beatBy = (caller: Caller) => bed.beat(2, [], 'dir2', [], 0, caller);
    const callers: readonly Caller[] = [{ kind: 'node', nodeId: 3 }, { kind: 'local' }, { kind: 'joiner', claims: 2 }];
    for (const caller of callers) expect(beatBy(caller).code, caller.kind).toBe('INVALID_ARGUMENT');
    expect(bed.master.view().nodes.find(({ descriptor }) => descriptor.nodeId === 2)?.state).toBe('suspect');
    expect(beatBy({ kind: 'node', nodeId: 2 }).code).toBeUndefined();
    expect(bed.master.view().nodes.find(({ descriptor }) => descriptor.nodeId === 2)?.state).toBe('up');
  });

  test('forgets what nodes reported when another term begins (M4)', () => {
    const bed = ready(new MasterBed());
    bed.lead(2);
    const view = call<undefined, ClusterView>(bed, masterView as never, undefined).reply;
    expect(view?.nodes.map((node) => node.state)).toEqual(['suspect', 'suspect', 'suspect']);
  });

  test('judges the silence of nodes by the settings in force, and that of nodes it never heard since it leads', () => {
    const bed = ready(new MasterBed());
    const states = () =>
      call<undefined, NodesOverview>(bed, masterNodes as never, undefined).reply?.nodes.map(({ state }) => state);
    bed.clock.advance(3_500);
    bed.beat(1);
    expect(states()).toEqual(['up', 'suspect', 'suspect']);
    call<unknown, unknown>(bed, masterSetSetting as never, { name: 'down-after', value: '5s' });
    bed.commit();
    bed.clock.advance(2_000);
    expect(states()).toEqual(['up', 'down', 'down']);
    bed.lead(2);
    expect(states()).toEqual(['suspect', 'suspect', 'suspect']);
    bed.clock.advance(5_500);
    expect(states()).toEqual(['down', 'down', 'down']);
  });

  describe('users and roles', () => {
    const change = (bed: MasterBed, one: AuthChange) =>
      call<unknown, AuthRevision>(bed, masterChangeAuth as never, { change: one });
    const awaited = (bed: MasterBed, revision: number) =>
      call<unknown, undefined>(bed, masterAwaitAuth as never, { revision });
    const confirm = (bed: MasterBed, nodeId: number, revision: number) =>
      bed.beat(nodeId, [], `dir${nodeId}`, [], revision);

    test('reach nodes that have an older revision with the answers to their heartbeats', () => {
      const bed = ready(new MasterBed());
      const added = change(bed, { type: 'addRole', role: 'shop' });
      expect(added.answered).toBe(false);
      bed.commit();
      expect(added.reply).toEqual({ revision: 2 });
      expect(confirm(bed, 1, 1).reply?.auth?.roles.map(({ name }) => name)).toEqual(['shop']);
      expect(confirm(bed, 1, 2).reply?.auth).toBeUndefined();
    });

    test('are refused as the state says, and beyond the limits before they are proposed', () => {
      const bed = ready(new MasterBed());
      const unknown = change(bed, { type: 'deleteRole', role: 'shop' });
      bed.commit();
      expect(unknown.code).toBe('AUTH_REFUSED');
      expect(change(bed, { type: 'addRole', role: 'x'.repeat(300) }).code).toBe('INVALID_ARGUMENT');
      expect(bed.proposed).toEqual([]);
    });

    test('are in force once every live node has confirmed them, or is silent for long enough (AR1)', () => {
      const bed = ready(new MasterBed());
      change(bed, { type: 'addRole', role: 'shop' });
      bed.commit();
      const waiting = awaited(bed, 2);
      confirm(bed, 1, 2);
      confirm(bed, 2, 3);
      expect(waiting.answered).toBe(false);
      confirm(bed, 3, 2);
      expect(waiting).toMatchObject({ answered: true, error: undefined });
      const later = awaited(bed, 3);
      confirm(bed, 1, 3);
      confirm(bed, 2, 3);
      for (let ms = 0; ms < 500; ms += 250) bed.clock.advance(250);
      expect(later.answered).toBe(false);
    });

    test('do not wait for a node that is silent, nor for one that was removed (AR1)', () => {
      const bed = ready(new MasterBed());
      for (let ms = 0; ms < 4_000; ms += 250) {
        bed.clock.advance(250);
        for (const id of [1, 2]) confirm(bed, id, 2);
      }
      expect(awaited(bed, 2)).toMatchObject({ answered: true, error: undefined });
    });

    test('a new leader waits for all nodes, as it has heard none (AR2), and a deposed one answers (AR3)', () => {
      const bed = ready(new MasterBed());
      for (const id of [1, 2, 3]) confirm(bed, id, 2);
      const before = awaited(bed, 3);
      bed.lead(2);
      expect(before.code).toBe('NOT_LEADER');
      const after = awaited(bed, 2);
      expect(after.answered).toBe(false);
      for (const id of [1, 2, 3]) confirm(bed, id, 2);
      expect(after).toMatchObject({ answered: true, error: undefined });
    });

    test('skip revisions when masters go on without a majority, so that no image has the revision of a lost one', () => {
      const bed = ready(new MasterBed());
      const before = bed.master.state.auth.revision;
      bed.master.state.goOnAlone();
      expect(bed.master.state.auth.revision).toBeGreaterThan(before + 1_000);
    });
  });

  test('comes back from its checkpoint, and a follower from its snapshot', async () => {
    const bed = ready(new MasterBed());
    bed.master.stage();
    const again = new MasterBed(1, bed.saved);
    expect(again.master.state.image()).toEqual(bed.master.state.image());
    const follower = new MasterBed(2);
    const snapshot = bed.master.snapshot();
    const receiver = follower.master.install(snapshot.meta);
    for await (const chunk of snapshot.chunks) for (const byte of chunk) await receiver.chunk(Uint8Array.of(byte));
    await receiver.finish();
    expect(follower.master.state.image()).toEqual(bed.master.state.image());
    expect(follower.saved).toBeDefined();
  });

  const edits: readonly { name: string; edit: (stream: Buffer) => Buffer; says: string }[] = [
    { name: 'is cut', edit: (stream) => stream.subarray(0, -1), says: 'truncated' },
    { name: 'has data after its end', edit: (stream) => Buffer.concat([stream, Buffer.of(0)]), says: 'after its end' },
    { name: 'is empty', edit: () => Buffer.alloc(0), says: 'ends too early' },
    {
      name: 'is another thing',
      edit: (stream) => Buffer.from(stream).fill('x', 0, 5),
      says: 'not a snapshot of a master',
    },
    { name: 'has a newer format', edit: (stream) => Buffer.from(stream).fill(9, 7, 8), says: 'format 9' },
    { name: 'is damaged', edit: (stream) => Buffer.from(stream).fill(0xfe, 30, 31), says: 'damaged' },
    { name: 'is of another position', edit: (stream) => stream, says: 'another log position' },
    { name: 'is too large', edit: () => Buffer.alloc(65 * 1024 * 1024), says: 'larger than' },
  ];
  test.each(edits)('keeps its state when a snapshot $name', async ({ name, edit, says }) => {
    const bed = ready(new MasterBed());
    const follower = new MasterBed(2);
    const before = follower.master.state.image();
    const { meta, chunks } = bed.master.snapshot();
    const parts: Uint8Array[] = [];
    for await (const chunk of chunks) parts.push(chunk);
    const index = name === 'is of another position' ? meta.index + 1 : meta.index;
    const receiver = follower.master.install({ ...meta, index });
    const receive = async (): Promise<void> => {
      await receiver.chunk(edit(Buffer.concat(parts)));
      await receiver.finish();
    };
    const error = await receive().catch((thrown: unknown) => thrown);
    expect(error).not.toBeInstanceOf(InvariantError);
    expect(String(error)).toContain(says);
    expect(follower.master.state.image()).toEqual(before);
    expect(follower.saved).toBeUndefined();
  });
});

test.each<{ refused: Refusal; code: string | undefined }>([
  { refused: 'notLeader', code: undefined },
  { refused: 'queueFull', code: 'RESOURCE_EXHAUSTED' },
  { refused: 'transferring', code: 'UNAVAILABLE' },
  { refused: 'noOwnTermCommit', code: 'UNAVAILABLE' },
  { refused: 'confPending', code: 'UNAVAILABLE' },
  { refused: 'confInvalid', code: 'INVALID_ARGUMENT' },
  { refused: 'notVoter', code: 'INVALID_ARGUMENT' },
])('what Raft refuses as $refused is $code for who asked the master', ({ refused, code }) => {
  expect(refusal(refused)?.code).toBe(code);
});

test('a master that joined a cluster which one node founded takes one replica for usual, as that node does', () => {
  const founded = new MasterState({ ...CONF, voters: [1] });
  const bed = new MasterBed(4, encodeMasterImage(founded.image()));
  expect(bed.master.settings.replicas).toBe(1);
  expect(new MasterBed().master.settings.replicas).toBe(3);
});

test('the leader keeps what nodes report of each minute, until its term ends', () => {
  const bed = ready(new MasterBed(1));
  const minute = Math.floor(bed.clock.wallMs() / 60_000);
  bed.clock.advance(60_000);
  const space = { capacityBytes: 1_000, availableBytes: 900 };
  const said = { ranges: [], results: [], conditions: [], authRevision: 0 };
  const heartbeat = { nodeId: 1, incarnation: 'dir1', space, labels: {}, hasMaster: true, ...said };
  const report = { minute, rates: { requestsPerS: 2.5 } };
  expect(call(bed, masterHeartbeat as never, { ...heartbeat, minute: report }).error).toBeUndefined();
  const activity = () => call<unknown, ActivityReply>(bed, masterActivity as never, { minutes: 9 }).reply;
  expect(activity()?.span).toEqual({ first: minute, count: 1 });
  expect(activity()?.nodes[0]?.values[0]).toBe(2.5);
  expect(bed.master.historyStats.nodes).toBe(1);
  bed.master.roleChanged({ role: 'follower', term: 2, leader: 3 });
  expect(bed.master.historyStats.bytes).toBe(0);
});
