// Acquires that wait: how a gateway keeps them, and how many.
import { SeededRandom, ServiceError, silentLogger, utf8 } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { AcquireAs, LockCommand, LockResult } from '@remora/lock';
import type {
  ClusterView,
  CommandResult,
  QueryResult,
  RangeReply,
  RangeRequest,
  RpcChannel,
  RpcDialer,
} from '@remora/protocol';
import { expect, test } from 'vitest';
import { RangeBackend } from './range-backend.ts';

const lock = { namespace: 'n', name: utf8('l') };
const VIEW: ClusterView = {
  clusterId: 'c',
  nodes: [],
  ranges: [
    {
      rangeId: 2,
      start: new Uint8Array(0),
      end: new Uint8Array(0),
      epoch: { confVersion: 1, version: 1 },
      replicas: [{ replicaId: 11, nodeId: 1, type: 'voter' }],
      revisionSource: 'range',
    },
  ],
  leaders: [[2, 1]],
  masterLeader: 0,
};

type Done = (error: ServiceError | undefined, reply: RangeReply | undefined) => void;

function reply(result: CommandResult | QueryResult): RangeReply {
  return { revision: 1, raftTerm: 1, rangeTimeMs: 5_000, result };
}

/** A leader at which every acquire joins the queue, and waits until the test answers it. */
class QueueBed {
  readonly clock = new ManualClock();
  readonly commands: LockCommand[] = [];
  readonly waiting: Done[] = [];
  readonly outcomes: string[] = [];
  /** What an acquire is answered. */
  asked: LockResult = { type: 'queued', position: 1 };
  /** Which commands are not answered by anybody: the leader is away. */
  isLost = (_command: LockCommand): boolean => false;
  waitsRefused = 0;
  readonly backend = new RangeBackend({
    nodeId: 1,
    dialer: this.#dialer(),
    view: () => VIEW,
    master: { draw: () => {}, newest: () => {}, view: () => {} },
    clock: this.clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    waitsMax: 2,
    onWaitRefused: () => void this.waitsRefused++,
  });

  #dialer(): RpcDialer {
    type Options = { readonly timeoutMs: number };
    const call = (method: { readonly name: string }, request: RangeRequest, options: Options, done: Done) => {
      if (method.name === 'range.info' || method.name === 'range.awaitLeader') {
        done(undefined, { rangeId: 2, leaderNode: 1, rangeTimeMs: 5_000, revision: 1, term: 1 } as never);
      } else if (request.body.kind === 'command' && request.body.command.type === 'lock') {
        const { command } = request.body.command;
        this.commands.push(command);
        if (this.isLost(command)) {
          done(new ServiceError('UNAVAILABLE', 'it is away'), undefined);
          return { cancel() {} };
        }
        const canceled: LockResult = { type: 'canceled', released: false };
        done(undefined, reply({ type: 'lock', result: command.type === 'acquire' ? this.asked : canceled }));
      } else return this.#wait(options.timeoutMs, done);
      return { cancel() {} };
    };
    const channel = () => ({ call }) as unknown as RpcChannel;
    return { channel, channelTo: channel };
  }

  #wait(timeoutMs: number, done: Done): { cancel(): void } {
    const cancel = (): void => {
      if (this.waiting.includes(done)) this.waiting.splice(this.waiting.indexOf(done), 1);
    };
    this.waiting.push(done);
    this.clock.setTimer(timeoutMs, () => {
      if (!this.waiting.includes(done)) return;
      cancel();
      done(new ServiceError('UNKNOWN_OUTCOME', 'timed out'), undefined);
    });
    return { cancel };
  }

  acquire(token: string, waitMs = 0, attempt = 1, as: AcquireAs = { type: 'shared' }): () => void {
    const owner = { session: { lease: 1n, incarnation: 1 }, token };
    const times = { waitUntilMs: 0, deadlineMs: 0, depthMax: 1, attempt };
    const command = { type: 'acquire', lock, owner, wait: true, data: utf8(''), as, ...times } as const;
    const giveUp = this.backend.command({ type: 'lock', command }, { timeoutMs: 1_000, waitMs }, (error, answer) => {
      const result = answer?.result.type === 'lock' ? answer.result.result : undefined;
      const said = result?.type === 'refused' ? result.code : result?.type;
      const queued = error?.details?.queued === true ? ', queued' : '';
      this.outcomes.push(`${token} ${error?.code ?? String(said)}${queued}`);
    });
    // The first one finds out who leads.
    this.clock.advance(100);
    return giveUp;
  }

  grant(): void {
    this.answer({ type: 'granted', version: 9, depth: 1, lockTimeMs: 0 });
  }

  /** Whoever has waited for longest. */
  answer(result: LockResult): void {
    this.waiting.shift()?.(undefined, reply({ type: 'lockAwait', result }));
    this.clock.advance(100);
  }
}

function refusal(code: Extract<LockResult, { type: 'refused' }>['code']): LockResult {
  return { type: 'refused', code, message: code };
}

const PERMITS: AcquireAs = { type: 'permits', permits: 2, capacity: 3 };

test('who waited for permits, and is said to wait no longer, is told why: the lock is asked again, once', () => {
  const bed = new QueueBed();
  bed.acquire('a', 5_000, 1, PERMITS);
  bed.asked = refusal('LOCK_PERMITS_EXCEEDED');
  bed.answer(refusal('LOCK_CANCELED'));
  expect([bed.outcomes, bed.commands.length]).toEqual([['a LOCK_PERMITS_EXCEEDED'], 2]);
  bed.asked = refusal('LOCK_CANCELED');
  bed.acquire('b', 0, 1, PERMITS);
  expect([bed.outcomes.at(-1), bed.commands.length]).toEqual(['b LOCK_CANCELED', 3]);
});

test('who waited for permits, and finds that there are enough again, waits on for what is left of its time', () => {
  const bed = new QueueBed();
  bed.acquire('a', 1_000, 1, PERMITS);
  bed.clock.advance(500);
  bed.answer(refusal('LOCK_CANCELED'));
  expect([bed.outcomes, bed.waiting.length, bed.commands.length]).toEqual([[], 1, 2]);
  bed.clock.advance(450);
  expect(bed.outcomes).toEqual(['a LOCK_TIMEOUT']);
  const giveUp = bed.acquire('b', 0, 1, PERMITS);
  bed.answer(refusal('LOCK_CANCELED'));
  expect(bed.waiting.length).toBe(1);
  giveUp();
  expect([bed.waiting.length, bed.outcomes.length]).toEqual([0, 1]);
});

test.each([
  { what: 'a lock', attempt: 1, as: undefined },
  { what: 'permits, without a number', attempt: 0, as: PERMITS },
])('who waited for $what is told what the queue says', ({ attempt, as }) => {
  const bed = new QueueBed();
  bed.acquire('a', 0, attempt, as);
  bed.answer(refusal('LOCK_CANCELED'));
  expect([bed.outcomes, bed.commands.length]).toEqual([['a LOCK_CANCELED'], 1]);
});

const tooMuch = [
  { name: 'keeps its place if it has a number, and is told so', attempt: 1, last: 'acquire', told: ', queued' },
  { name: 'leaves the queue if it has none', attempt: 0, last: 'cancel', told: '' },
] as const;
test.each(tooMuch)(
  'an acquire beyond those that may wait is RESOURCE_EXHAUSTED, and $name',
  ({ attempt, last, told }) => {
    const bed = new QueueBed();
    for (const token of ['a', 'b', 'c']) bed.acquire(token, 0, attempt);
    expect([bed.outcomes, bed.waitsRefused]).toEqual([[`c RESOURCE_EXHAUSTED${told}`], 1]);
    expect(bed.commands.at(-1)).toMatchObject({ type: last, owner: { token: 'c' } });
    expect(bed.waiting.length).toBe(2);
  },
);

test('a wait that is over takes nothing back from a caller who may hold the lock by another gateway', () => {
  const bed = new QueueBed();
  bed.acquire('numbered', 500);
  bed.acquire('not', 500, 0);
  bed.clock.advance(1_000);
  expect(bed.outcomes).toEqual(['numbered LOCK_TIMEOUT', 'not LOCK_TIMEOUT']);
  const cancels = bed.commands.flatMap((command) => (command.type === 'cancel' ? [command.owner.token] : []));
  expect(cancels).toEqual(['not']);
});

const givenUp: readonly { readonly name: string; readonly give: (bed: QueueBed) => void }[] = [
  {
    name: 'whose wait is over',
    give: (bed) => bed.acquire('c', 500, 0),
  },
  {
    name: 'that may not wait',
    give: (bed) => {
      for (const token of ['a', 'b']) bed.acquire(token);
      bed.acquire('c', 0, 0);
    },
  },
];
test.each(givenUp)('an acquire $name is not refused while its place may be there, and may be granted', ({ give }) => {
  const bed = new QueueBed();
  bed.isLost = ({ type }) => type === 'cancel';
  give(bed);
  bed.clock.advance(20_000);
  expect(bed.commands.some(({ type }) => type === 'cancel')).toBe(true);
  expect(bed.outcomes).toEqual(['c UNKNOWN_OUTCOME']);
});

test('an upgrade that was granted has not failed because the lock could not be asked again', () => {
  const bed = new QueueBed();
  bed.acquire('a', 0, 1, { type: 'upgrade' });
  bed.isLost = () => true;
  bed.grant();
  bed.clock.advance(20_000);
  expect(bed.outcomes).toEqual(['a UNKNOWN_OUTCOME']);
});

const ends: readonly { readonly name: string; readonly end: (bed: QueueBed, giveUp: () => void) => void }[] = [
  { name: 'was granted', end: (bed) => bed.grant() },
  {
    name: 'was given up',
    end: (_bed, giveUp) => {
      giveUp();
      giveUp();
    },
  },
  { name: 'took too long', end: (bed) => bed.clock.advance(1_000) },
];
test.each(ends)('a wait that $name makes room for one other', ({ end }) => {
  const bed = new QueueBed();
  const giveUp = bed.acquire('a', 500);
  bed.acquire('b');
  end(bed, giveUp);
  bed.outcomes.splice(0);
  bed.acquire('c');
  bed.acquire('d');
  expect([bed.outcomes, bed.waiting.length]).toEqual([['d RESOURCE_EXHAUSTED, queued'], 2]);
});

test('a wait outlives the questions by which it is asked for', () => {
  const bed = new QueueBed();
  bed.acquire('a');
  bed.clock.advance(100_000);
  expect([bed.outcomes, bed.waiting.length]).toEqual([[], 1]);
  bed.grant();
  expect(bed.outcomes).toEqual(['a granted']);
});

test('questions for the end of a grant are limited by themselves, and refused at once', () => {
  const bed = new QueueBed();
  bed.acquire('a');
  const codes: string[] = [];
  const ask = () => {
    const query = { type: 'grantEnd', lock, version: 3, session: { lease: 1n, incarnation: 1 } } as const;
    return bed.backend.query(query, { timeoutMs: 15_000 }, (error) => codes.push(error?.code ?? 'ok'));
  };
  const giveUp = ask();
  bed.clock.advance(100);
  ask();
  expect([codes, bed.waitsRefused]).toEqual([['RESOURCE_EXHAUSTED'], 1]);
  giveUp();
  ask();
  bed.clock.advance(100);
  expect([codes.length, bed.waiting.length]).toEqual([1, 2]);
  bed.acquire('b');
  expect([bed.outcomes, bed.waiting.length]).toEqual([[], 3]);
});

test('RB1: a transaction that could change a key twice is refused, and no range is sent anything', () => {
  const bed = new QueueBed();
  const flags = { prevKv: false, ignoreValue: false, ignoreLease: false };
  const put = { type: 'put', key: utf8('x'), value: utf8('v'), lease: 0n, ...flags } as const;
  const remove = { type: 'delete', key: utf8('a'), end: utf8('z'), prevKv: false } as const;
  const nested = (op: typeof put | typeof remove) =>
    ({ type: 'txn', txn: { compare: [], success: [op], failure: [] } }) as const;
  for (const success of [
    [put, remove],
    [nested(put), nested(remove)],
    [nested(remove), nested(put)],
  ]) {
    let told: ServiceError | undefined;
    const txn = { compare: [], success, failure: [] };
    bed.backend.command({ type: 'txn', txn }, { timeoutMs: 1_000 }, (error) => {
      told = error;
    });
    expect(told?.code).toBe('DUPLICATE_KEY');
  }
  bed.clock.advance(500);
  expect([bed.waiting.length, bed.backend.lookupStats]).toEqual([0, { routes: 0, leaders: 0 }]);
});
