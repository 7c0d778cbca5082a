import { ManualClock, SeededRandom, ServiceError, spanCovers } from '@remora/base';
import { type Compare, type KvOp, kvRoutingKey, type RangeOp, type Txn } from '@remora/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BackendReply } from '../backend.ts';
import { routingSpan } from '../routing/request-keys.ts';
import { Coordinator } from './coordinator.ts';
import type { KvCommand } from './plan.ts';
import { executeTxn, type Pairs, shown } from './test-pairs.ts';
import { FakeRanges } from './test-ranges.ts';

const KEYS = 'abcdef';
const bytes = (text: string): Buffer => Buffer.from(text);

const keys = {
  key: fc.constantFrom(...KEYS).map(bytes),
  end: fc.option(fc.constantFrom('', ...KEYS).map(bytes), { nil: undefined }),
};

function withoutNothing<Part extends { readonly end?: Uint8Array | undefined }>(part: Part): Part {
  const { end, ...rest } = part;
  return (end === undefined ? rest : part) as Part;
}

const reads: fc.Arbitrary<RangeOp> = fc
  .record({
    ...{ type: fc.constant('range' as const), ...keys, limit: fc.nat(3), revision: fc.constant(0) },
    sortOrder: fc.constantFrom('none' as const, 'descend' as const),
    sortTarget: fc.constantFrom('key' as const, 'mod' as const, 'value' as const),
    ...{ keysOnly: fc.boolean(), countOnly: fc.boolean() },
    ...{ minModRevision: fc.constant(0), maxModRevision: fc.constant(0) },
    ...{ minCreateRevision: fc.constant(0), maxCreateRevision: fc.constant(0) },
  })
  .map((op) => withoutNothing(op) as RangeOp);

const deletes: fc.Arbitrary<KvOp> = fc
  .record({ type: fc.constant('delete' as const), ...keys, prevKv: fc.boolean() })
  .map((op) => withoutNothing(op) as KvOp);

const puts: fc.Arbitrary<KvOp> = fc.record({
  type: fc.constant('put' as const),
  key: keys.key,
  value: fc.constantFrom('x', 'y', 'z').map(bytes),
  lease: fc.constant(0n),
  prevKv: fc.boolean(),
  ignoreValue: fc.constant(false),
  ignoreLease: fc.constant(false),
});

const compares: fc.Arbitrary<Compare> = fc
  .record({
    ...keys,
    result: fc.constantFrom('equal' as const, 'greater' as const, 'less' as const, 'notEqual' as const),
    target: fc.oneof(
      fc.record({ of: fc.constant('version' as const), value: fc.nat(2) }),
      fc.record({ of: fc.constant('value' as const), value: fc.constantFrom('x', 'y').map(bytes) }),
    ),
  })
  .map((compare) => withoutNothing(compare) as Compare);

const { txn } = fc.letrec<{ txn: Txn; op: KvOp }>((tie) => ({
  txn: fc.record({
    compare: fc.array(compares, { maxLength: 2 }),
    success: fc.array(tie('op'), { minLength: 1, maxLength: 3 }),
    failure: fc.array(tie('op'), { maxLength: 2 }),
  }),
  op: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    puts,
    deletes,
    reads,
    fc.record({ type: fc.constant('txn' as const), txn: tie('txn') }),
  ),
}));

const commands: fc.Arbitrary<KvCommand> = fc.oneof(
  txn.map((one) => ({ type: 'txn' as const, txn: one })),
  deletes.map((op) => ({ type: 'kv', op }) as KvCommand),
);

interface Seen {
  readonly requestId: string;
  readonly command: KvCommand;
  /** Revisions that had been answered when it began. */
  readonly after: number;
  error: ServiceError | undefined;
  reply: BackendReply<unknown> | undefined;
}

/** One request of a client, and when its coordinator ends: at the so-manieth message; another is asked then. */
interface Asked {
  readonly command: KvCommand;
  readonly atMs: number;
  readonly endsAt: number | undefined;
}

interface Course {
  readonly seed: number;
  readonly borders: readonly string[];
  readonly lossPerMille: number;
  readonly asked: readonly Asked[];
}

const courses: fc.Arbitrary<Course> = fc.record({
  seed: fc.nat(),
  borders: fc.subarray([...KEYS].slice(1), { minLength: 1 }),
  lossPerMille: fc.constantFrom(0, 0, 100),
  asked: fc.array(
    fc.record({ command: commands, atMs: fc.nat(60), endsAt: fc.option(fc.nat(40), { nil: undefined }) }),
    { minLength: 1, maxLength: 6 },
  ),
});

/** The last coordinator that is asked never ends. */
const NOBODY = (): void => {};
const UNKNOWN = new ServiceError('UNKNOWN_OUTCOME', 'an earlier attempt may have been applied');
const TIMEOUT_MS = 1_000;
const DEADLINE_MS = 4_000;

class World {
  readonly clock = new ManualClock({ monotonicMs: 1_000 });
  readonly ranges: FakeRanges;
  readonly seen: Seen[] = [];
  ended = 0;
  #names = 0;

  constructor({ seed, borders, lossPerMille, asked }: Course) {
    const random = new SeededRandom(seed);
    this.ranges = new FakeRanges(
      this.clock,
      random,
      borders.map((key) => kvRoutingKey(bytes(key))),
    );
    this.ranges.lossPerMille = lossPerMille;
    for (const [i, one] of asked.filter(({ command }) => this.#isOverRanges(command)).entries()) {
      this.clock.setTimer(one.atMs, () => this.#begin(`r${i}`, one));
    }
  }

  #isOverRanges(command: KvCommand): boolean {
    const span = routingSpan(command);
    return span !== undefined && !this.ranges.ranges.some((range) => spanCovers(range, span));
  }

  #begin(requestId: string, { command, endsAt }: Asked): void {
    const after = this.seen.reduce((highest, { reply }) => Math.max(highest, reply?.revision ?? 0), 0);
    const seen: Seen = { requestId, command, after, error: undefined, reply: undefined };
    this.seen.push(seen);
    const deadlineMs = this.clock.monotonicMs() + DEADLINE_MS;
    this.#send(seen, deadlineMs, endsAt, () => {
      if (seen.reply === undefined && seen.error === undefined) this.#send(seen, deadlineMs, undefined, NOBODY);
    });
  }

  /** Through a coordinator of its own; `gone` is called a moment after that ended. */
  #send(seen: Seen, deadlineMs: number, endsAt: number | undefined, gone: () => void): void {
    let messages = 0;
    let running = true;
    const calls = this.ranges.calls(() => {
      if (running && messages++ === endsAt) {
        running = false;
        this.ended++;
        this.clock.setTimer(20, gone);
      }
      return running;
    });
    const coordinator = new Coordinator({ ...calls, newTxnId: () => `t${++this.#names}` });
    const options = { requestId: seen.requestId, deadlineMs, timeoutMs: TIMEOUT_MS };
    coordinator.command(
      seen.command,
      options,
      (error, reply) => {
        if (!running) return;
        expect([seen.error, seen.reply], 'a request is answered once').toEqual([undefined, undefined]);
        // The coordinator that ended may have committed it.
        seen.error = error !== undefined && gone === NOBODY ? UNKNOWN : error;
        seen.reply = reply;
      },
      undefined,
    );
  }

  async run(): Promise<void> {
    const endMs = this.clock.monotonicMs() + 2 * DEADLINE_MS;
    const recover = (): void => {
      this.ranges.recover();
      this.clock.setTimer(100, recover);
    };
    recover();
    while ((this.clock.nextTimerMs() ?? endMs) < endMs) {
      this.clock.fireNext();
      for (let turn = 0; turn < 25; turn++) await Promise.resolve();
    }
  }

  check(): void {
    const { commits, ranges } = this.ranges;
    const byRequest = new Map(commits.map((commit) => [commit.requestId, commit.revision]));
    expect(byRequest.size, 'a request is applied once').toBe(commits.length);
    expect(
      ranges.map(({ prepared }) => prepared.size),
      'nothing stays locked',
    ).toEqual(ranges.map(() => 0));
    const results = this.#replay();
    for (const { requestId, error, reply, after } of this.seen) {
      const revision = byRequest.get(requestId);
      if (revision !== undefined) expect(revision).toBeGreaterThan(after);
      if (reply !== undefined)
        expect(shown([reply.revision, reply.result])).toBe(shown([revision, results.get(requestId)]));
      else if (error !== undefined && error.code !== 'UNKNOWN_OUTCOME') expect(revision, error.code).toBeUndefined();
    }
  }

  /** The same transactions, one after another, in the order of their revisions. */
  #replay(): ReadonlyMap<string, unknown> {
    const pairs: Pairs = new Map();
    const results = new Map<string, unknown>();
    for (const { requestId, revision } of this.ranges.commits.toSorted((a, b) => a.revision - b.revision)) {
      const command = this.seen.find((one) => one.requestId === requestId)?.command;
      if (command?.type === 'kv')
        results.set(
          requestId,
          executeTxn({ compare: [], success: [command.op], failure: [] }, pairs, revision).results[0],
        );
      else if (command !== undefined) results.set(requestId, executeTxn(command.txn, pairs, revision));
    }
    const sorted = (all: Pairs): string => shown([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
    expect(sorted(this.ranges.pairs)).toBe(sorted(pairs));
    return results;
  }
}

describe('transactions over ranges', () => {
  test('are as if each had happened at one moment, whatever is lost and whichever coordinator ends', {
    timeout: 60_000,
  }, async () => {
    let ended = 0;
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(courses, async (course) => {
        const world = new World(course);
        await world.run();
        world.check();
        ended += world.ended;
        answered += world.seen.filter(({ reply }) => reply !== undefined).length;
      }),
      { numRuns: 150, seed: 11 },
    );
    expect(ended).toBeGreaterThan(50);
    expect(answered).toBeGreaterThan(150);
  });
});
