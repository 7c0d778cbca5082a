import { SeededRandom, ServiceError, spanCovers } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  type Compare,
  isLockCompare,
  type KeyCompare,
  type KvOp,
  kvRoutingKey,
  type LockCompare,
  type RangeOp,
  type Txn,
} from '@remora/protocol';
import fc from 'fast-check';
import { CLUSTER } from '../../src/authorisation/clearance.ts';
import type { BackendReply } from '../../src/backend.ts';
import { routingSpan } from '../../src/routing/routes/request-keys.ts';
import { Coordinator } from '../../src/transactions/coordinator.ts';
import type { KvCommand } from '../../src/transactions/plan.ts';
import { FakeRanges } from './fake-ranges.ts';
import { executeTxn, type Pairs, shown } from './pairs.ts';

/** Requests over several ranges at random, and coordinators that end at some message. For tests. */
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

const keyCompares: fc.Arbitrary<KeyCompare> = fc
  .record({
    ...keys,
    result: fc.constantFrom('equal' as const, 'greater' as const, 'less' as const, 'notEqual' as const),
    target: fc.oneof(
      fc.record({ of: fc.constant('version' as const), value: fc.nat(2) }),
      fc.record({ of: fc.constant('value' as const), value: fc.constantFrom('x', 'y').map(bytes) }),
    ),
  })
  .map((compare) => withoutNothing(compare) as KeyCompare);

/** The version is set when the request begins: that by which the lock is held then, or an earlier one. */
const lockCompares: fc.Arbitrary<LockCompare> = fc
  .nat(1)
  .map((version) => ({ lock: { namespace: 'default', name: bytes('l') }, version }));
const compares: fc.Arbitrary<Compare> = fc.oneof(
  { arbitrary: keyCompares, weight: 2 },
  { arbitrary: lockCompares, weight: 1 },
);

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

export interface Course {
  readonly seed: number;
  readonly borders: readonly string[];
  readonly lossPerMille: number;
  readonly asked: readonly Asked[];
  /** When the lock goes to another holder. */
  readonly handOversMs: readonly number[];
}

export const courses: fc.Arbitrary<Course> = fc.record({
  seed: fc.nat(),
  borders: fc.subarray([...KEYS].slice(1), { minLength: 1 }),
  lossPerMille: fc.constantFrom(0, 0, 100),
  asked: fc.array(
    fc.record({ command: commands, atMs: fc.nat(60), endsAt: fc.option(fc.nat(40), { nil: undefined }) }),
    { minLength: 1, maxLength: 6 },
  ),
  handOversMs: fc.array(fc.nat(60), { maxLength: 6 }),
});

/** The last coordinator that is asked never ends. */
const NOBODY = (): void => {};
const UNKNOWN = new ServiceError('UNKNOWN_OUTCOME', 'an earlier attempt may have been applied');
const TIMEOUT_MS = 1_000;
const DEADLINE_MS = 4_000;

/**
 * One course of requests, and what is wrong with how it went.
 *
 * W1. A request is applied once, and what was answered is what the requests do one after another in the order of their
 *     revisions; so are the pairs at the end. Each grant of the lock has its place in that order too.
 * W2. A request that failed was not applied; a change has a revision above those of all answers before it began, and
 *     any other answer has one that is not below them.
 * W3. A request is answered once, unless its coordinator ended; nothing stays locked.
 */
export class HistoryWorld {
  readonly clock = new ManualClock({ monotonicMs: 1_000 });
  readonly ranges: FakeRanges;
  readonly seen: Seen[] = [];
  readonly faults: string[] = [];
  ended = 0;
  #names = 0;

  constructor({ seed, borders, lossPerMille, asked, handOversMs }: Course) {
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
    for (const atMs of handOversMs) this.clock.setTimer(atMs, () => this.#handOver());
  }

  /** Whoever waits for the lock waits for transactions as well. */
  #handOver(): void {
    if (!this.ranges.handOver()) this.clock.setTimer(1, () => this.#handOver());
  }

  #isOverRanges(command: KvCommand): boolean {
    const span = routingSpan(command);
    return span !== undefined && !this.ranges.ranges.some((range) => spanCovers(range, span));
  }

  #begin(requestId: string, { command: drawn, endsAt }: Asked): void {
    const command = drawn.type === 'txn' ? { ...drawn, txn: this.#comparing(drawn.txn) } : drawn;
    const after = this.seen.reduce((highest, { reply }) => Math.max(highest, reply?.revision ?? 0), 0);
    const seen: Seen = { requestId, command, after, error: undefined, reply: undefined };
    this.seen.push(seen);
    const deadlineMs = this.clock.monotonicMs() + DEADLINE_MS;
    this.#send(seen, deadlineMs, endsAt, () => {
      if (seen.reply === undefined && seen.error === undefined) this.#send(seen, deadlineMs, undefined, NOBODY);
    });
  }

  /** With versions by which the lock is held, or was before. */
  #comparing({ compare, success, failure }: Txn): Txn {
    const inner = (op: KvOp): KvOp => (op.type === 'txn' ? { ...op, txn: this.#comparing(op.txn) } : op);
    return {
      compare: compare.map((one) => (isLockCompare(one) ? { ...one, version: this.ranges.held - one.version } : one)),
      success: success.map(inner),
      failure: failure.map(inner),
    };
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
    const options = { requestId: seen.requestId, deadlineMs, timeoutMs: TIMEOUT_MS, clearance: CLUSTER };
    coordinator.command(
      seen.command,
      options,
      (error, reply) => {
        if (!running) return;
        if (seen.error !== undefined || seen.reply !== undefined)
          this.faults.push(`W3: ${seen.requestId} is answered twice`);
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

  check(): readonly string[] {
    const { commits, ranges } = this.ranges;
    const byRequest = new Map(commits.map((commit) => [commit.requestId, commit.revision]));
    if (byRequest.size !== commits.length) this.faults.push('W1: a request is applied twice');
    if (ranges.some(({ prepared }) => prepared.size > 0)) this.faults.push('W3: a part stays prepared');
    const results = this.#replay();
    for (const { requestId, error, reply, after } of this.seen) {
      const revision = byRequest.get(requestId);
      const answer = shown([reply?.revision, reply?.result]);
      const wanted = shown([revision, results.get(requestId)]);
      if (reply !== undefined && answer !== wanted) this.faults.push(`W1: ${answer} was answered, not ${wanted}`);
      if (revision === undefined) {
        if (error?.code === 'RESULT_LOST') this.faults.push(`W2: ${requestId} is said to be applied, and was not`);
        continue;
      }
      const lowest = this.ranges.changed.has(requestId) ? after + 1 : after;
      if (revision < lowest) this.faults.push(`W2: ${requestId} has ${revision}, after ${after} was answered`);
      if (error !== undefined && !error.mayBeApplied) {
        this.faults.push(`W2: ${requestId} failed with ${error.code}, and was applied`);
      }
    }
    return this.faults;
  }

  /** The same transactions, one after another, in the order of their revisions. */
  #replay(): ReadonlyMap<string, unknown> {
    const pairs: Pairs = new Map();
    const results = new Map<string, unknown>();
    const heldAt = (revision: number): number => this.ranges.grants.findLast((grant) => grant <= revision) ?? 0;
    for (const { requestId, revision } of this.ranges.commits.toSorted((a, b) => a.revision - b.revision)) {
      const command = this.seen.find((one) => one.requestId === requestId)?.command;
      if (command === undefined) continue;
      const isTxn = command.type === 'txn';
      const txn = isTxn ? command.txn : { compare: [], success: [command.op], failure: [] };
      const result = executeTxn(txn, { pairs, held: heldAt(revision) }, revision);
      results.set(requestId, isTxn ? result : result.results[0]);
    }
    const sorted = (all: Pairs): string => shown([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
    const [there, wanted] = [sorted(this.ranges.pairs), sorted(pairs)];
    if (there !== wanted) this.faults.push(`W1: the pairs are ${there}, not ${wanted}`);
    return results;
  }
}
