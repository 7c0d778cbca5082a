import { assert, nodeClock, SeededRandom, silentLogger } from '@remora/base';
import type { Command, CommandBatch, Compare, KvOp, RangeDescriptor, RevisionBlock, Txn } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { NaiveKv, resultText } from '../../test/support/naive-kv.ts';
import { CONF, DESCRIPTOR, del, HISTORY, memoryEngine, put, range } from '../../test/support/state-bed.ts';
import { HistoryCollector } from '../range/history-collector.ts';
import { EntryRun } from './entry-run.ts';
import type { Outcome } from './outcomes/outcome-codec.ts';
import { RangeState } from './range-state.ts';

/** With bytes that the history's keys escape, and keys that are prefixes of others. */
const KEYS = ['a', 'a\0', 'a\0\xff', 'a\x01', 'b', 'b\0b', '\xff', '\0'];
const bytes = (key: string): Buffer => Buffer.from(key, 'latin1');

/** A seeded log of batches, as a leader could have written them. */
class LogMaker {
  readonly #random: SeededRandom;
  readonly #source: RangeDescriptor['revisionSource'];
  #ids = 0;
  #timeMs = 1_000;
  #recent: { requestId: string; deadlineMs: number; command: Command }[] = [];

  constructor(random: SeededRandom, source: RangeDescriptor['revisionSource']) {
    this.#random = random;
    this.#source = source;
  }

  batch(near: number): CommandBatch {
    this.#timeMs += this.#random.int(40);
    const commands = Array.from({ length: 1 + this.#random.int(4) }, () => this.#command(near));
    const batch = { rangeTimeMs: this.#timeMs, wallMs: this.#timeMs, epoch: DESCRIPTOR.epoch, commands };
    const block = this.#source === 'master' ? this.#block(near, commands.length) : undefined;
    return block === undefined ? batch : { ...batch, block };
  }

  /** What the master gave, or anything: none, one used before, one of others, one that is too small. */
  #block(near: number, commands: number): RevisionBlock | undefined {
    switch (this.#random.int(6)) {
      case 0:
        return undefined;
      case 1:
        return { first: Math.max(1, near - this.#random.int(4)), count: 1 + this.#random.int(4) };
      default:
        return { first: near + 1 + this.#random.int(3), count: Math.max(1, commands - this.#random.int(2)) };
    }
  }

  #command(near: number): CommandBatch['commands'][number] {
    const { length } = this.#recent;
    // A retry: the same id, command and deadline, which may have passed.
    if (length > 0 && this.#random.int(5) === 0) return this.#recent[this.#random.int(length)] ?? this.#new(near);
    return this.#new(near);
  }

  #new(near: number): CommandBatch['commands'][number] {
    // What a leader proposes by itself has neither an id nor a deadline.
    if (this.#random.int(6) === 0) {
      const op = this.#random.int(2) === 0 ? put('a', 'own') : del('a', 'b');
      if (op.type !== 'txn') return { requestId: '', deadlineMs: 0, command: { type: 'kv', op } };
    }
    const deadlineMs = this.#timeMs + this.#random.int(120);
    const item = { requestId: `r${++this.#ids}`, deadlineMs, command: this.#kind(near) };
    this.#recent = [...this.#recent.slice(-12), item];
    return item;
  }

  #kind(near: number): Command {
    switch (this.#random.int(12)) {
      case 0:
        return { type: 'compact', revision: Math.max(1, near - this.#random.int(8)) };
      case 1:
        return { type: 'leaseGrant', id: BigInt(this.#random.int(3)) - 1n || 9n, ttlMs: 5, attributes: {} };
      case 2:
        return { type: 'noop' };
      case 3:
      case 4:
      case 5:
        return { type: 'txn', txn: this.#txn(near, 2) };
      default: {
        const op = this.#op(near);
        return op.type === 'txn' ? { type: 'txn', txn: op.txn } : { type: 'kv', op };
      }
    }
  }

  #key(): Buffer {
    return bytes(KEYS[this.#random.int(KEYS.length)] ?? 'a');
  }

  #end(): { end?: Buffer } {
    const kind = this.#random.int(3);
    return kind === 0 ? {} : { end: kind === 1 ? Buffer.alloc(0) : this.#key() };
  }

  #op(near: number): KvOp {
    const prevKv = this.#random.int(2) === 0;
    switch (this.#random.int(4)) {
      case 0:
        return { type: 'delete', key: this.#key(), ...this.#end(), prevKv };
      case 1: {
        const revision = this.#random.int(2) === 0 ? 0 : Math.max(0, near + 1 - this.#random.int(10));
        const more = { revision, limit: this.#random.int(3), countOnly: this.#random.int(4) === 0 };
        return { ...range('', undefined, more), key: this.#key(), ...this.#end() };
      }
      default:
        return { ...put('', `v${this.#random.int(4)}`, { prevKv }), key: this.#key() };
    }
  }

  #txn(near: number, depth: number): Txn {
    const ops = () =>
      Array.from(
        { length: this.#random.int(4) },
        (): KvOp =>
          depth > 0 && this.#random.int(4) === 0 ? { type: 'txn', txn: this.#txn(near, depth - 1) } : this.#op(near),
      );
    return {
      compare: Array.from({ length: this.#random.int(3) }, () => this.#compare()),
      success: ops(),
      failure: ops(),
    };
  }

  #compare(): Compare {
    const result = (['equal', 'greater', 'less', 'notEqual'] as const)[this.#random.int(4)] ?? 'equal';
    const targets = [
      { of: 'version' as const, value: this.#random.int(3) },
      { of: 'mod' as const, value: this.#random.int(20) },
      { of: 'value' as const, value: Buffer.from(`v${this.#random.int(4)}`) },
    ];
    return {
      key: this.#key(),
      ...this.#end(),
      result,
      target: targets[this.#random.int(3)] ?? { of: 'version', value: 0 },
    };
  }
}

/** A replica that checkpoints, collects and crashes when it likes. */
class Replica {
  readonly engine = memoryEngine();
  readonly random: SeededRandom;
  readonly log: CommandBatch[];
  readonly outcomes: Map<string, string>;
  readonly #descriptor: RangeDescriptor;
  state: RangeState;
  #collector: HistoryCollector | undefined;

  constructor(random: SeededRandom, log: CommandBatch[], source: RangeDescriptor['revisionSource']) {
    this.#descriptor = { ...DESCRIPTOR, revisionSource: source };
    this.random = random;
    this.log = log;
    this.outcomes = new Map();
    this.state = this.#open();
    this.state.stage();
  }

  #open(): RangeState {
    const state = new RangeState(this.engine, {
      descriptor: this.#descriptor,
      conf: CONF,
      effects: {
        onEvents() {},
        onNotice() {},
        onHoldDelayed() {},
        onLeaseGranted() {},
        onLeaseEnded() {},
        onSplit() {},
        onSealed() {},
        source: () => this.state,
        onMerged() {},
      },
    });
    state.load();
    return state;
  }

  async catchUp(): Promise<void> {
    while (this.state.applied.index < this.log.length) {
      const crashed = await this.#next();
      if (crashed) this.state = this.#open();
    }
  }

  async #next(): Promise<boolean> {
    const index = this.state.applied.index + 1;
    const batch = this.log[index - 1];
    assert(batch !== undefined, 'there is a next entry');
    const onOutcome = (i: number, outcome: Outcome): void => this.#told(index, i, outcome);
    const waiting = EntryRun.begin(this.state, { index, term: 1 }, batch, { onOutcome }).apply();
    if (waiting !== undefined && this.random.int(3) === 0) {
      // A6: a checkpoint while the entry waits for cold data, and a crash before it has ended.
      for (let turns = this.random.int(6); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
      await this.#checkpoint();
      // What comes after the checkpoint is lost, whether it was done before the crash or not.
      await waiting;
      if (this.random.int(2) === 0) return this.#crash();
    }
    await waiting;
    if (this.random.int(4) === 0) await this.#checkpoint();
    if (this.random.int(6) === 0) await this.#collect();
    return this.random.int(8) === 0 ? this.#crash() : false;
  }

  #crash(): boolean {
    this.#collector?.stop();
    this.engine.crash();
    return true;
  }

  async #checkpoint(): Promise<void> {
    this.state.stage();
    await this.engine.checkpoint();
  }

  async #collect(): Promise<void> {
    this.#collector?.stop();
    this.#collector = new HistoryCollector(this.engine, HISTORY, { clock: nodeClock(), logger: silentLogger });
    this.#collector.collect(this.state.compactRevision);
    for (let turns = this.random.int(20); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
  }

  #told(index: number, i: number, outcome: Outcome): void {
    const name = `${index}.${i}`;
    const shown = outcome.ok
      ? `${outcome.revision}:${resultText(outcome.result)}`
      : `${outcome.revision}:${outcome.code}`;
    const before = this.outcomes.get(name);
    expect(before ?? shown, `outcome ${name} when applied again`).toBe(shown);
    this.outcomes.set(name, shown);
  }

  /** Everything that anybody could ask for now. */
  async picture(): Promise<string[]> {
    const { state } = this;
    const lines = [`${state.revision} ${state.compactRevision} ${state.keys} ${state.bytes} ${state.rangeTimeMs}`];
    lines.push(
      [...state.leases.all()]
        .map((lease) => `${lease.id}/${lease.incarnation}`)
        .sort()
        .join(' '),
    );
    return lines;
  }
}

async function readAll(state: RangeState, revision: number): Promise<string> {
  const op = { ...range('', '', { revision }), key: Buffer.from([0]) };
  let shown = '';
  const position = { index: state.applied.index + 1, term: 1 };
  const batch = {
    rangeTimeMs: state.rangeTimeMs,
    wallMs: 0,
    epoch: DESCRIPTOR.epoch,
    commands: [{ requestId: '', deadlineMs: 0, command: { type: 'kv', op } as const }],
  };
  const onOutcome = (_i: number, outcome: Outcome): void => {
    shown = outcome.ok ? resultText(outcome.result) : outcome.code;
  };
  await EntryRun.begin(state, position, batch, { onOutcome }).apply();
  return shown;
}

/** The model's answer to each command of the log, by the rules of A2 to A4. */
function expected(
  log: readonly CommandBatch[],
  source: RangeDescriptor['revisionSource'],
): { readonly model: NaiveKv; readonly outcomes: Map<string, string> } {
  const model = new NaiveKv();
  const outcomes = new Map<string, string>();
  const remembered = new Map<string, string>();
  const leases = new Set<bigint>();
  for (const [at, batch] of log.entries()) {
    for (const [i, { requestId, deadlineMs, command }] of batch.commands.entries()) {
      const name = `${at + 1}.${i}`;
      if (deadlineMs !== 0 && deadlineMs < batch.rangeTimeMs) {
        outcomes.set(name, `${model.revision}:DEADLINE_EXCEEDED`);
        continue;
      }
      const early = remembered.get(requestId);
      model.next = source === 'range' ? undefined : fromBlock(model.revision, batch.block);
      if (early === undefined && model.next === Number.POSITIVE_INFINITY && changing(command)) {
        outcomes.set(name, `${model.revision}:UNAVAILABLE`);
        continue;
      }
      const text = early ?? answer(model, leases, command, batch.block);
      if (requestId !== '') remembered.set(requestId, text);
      outcomes.set(name, text);
    }
  }
  return { model, outcomes };
}

/** The lowest of the block above `revision`; infinity when there is none. */
function fromBlock(revision: number, block: RevisionBlock | undefined): number {
  const { first, count } = block ?? { first: 0, count: 0 };
  const all = Array.from({ length: count }, (_, i) => first + i);
  return Math.min(...all.filter((candidate) => candidate > revision));
}

function changing(command: Command): boolean {
  if (command.type === 'kv') return command.op.type !== 'range';
  return command.type === 'txn' || command.type === 'leaseGrant';
}

function answer(model: NaiveKv, leases: Set<bigint>, command: Command, block: RevisionBlock | undefined): string {
  let text: string;
  if (command.type === 'kv') text = model.run(command.op);
  else if (command.type === 'txn') text = model.run({ type: 'txn', txn: command.txn });
  else if (command.type === 'compact') text = model.compact(command.revision);
  else if (command.type === 'leaseGrant') {
    text = leases.has(command.id) ? 'LEASE_EXISTS' : 'leaseGrant';
    if (!leases.has(command.id)) model.step();
    leases.add(command.id);
  } else text = command.type;
  const failed = /^[A-Z_]+$/.test(text);
  return `${failed || !changing(command) ? model.revision : Math.max(model.revision, (block?.first ?? 0) - 1)}:${text}`;
}

describe('a range against a naive model', () => {
  const seeds = Array.from({ length: 25 }, (_, i) => i + 1);
  test.each([
    ...seeds.map((seed) => ({ seed, source: 'range' as const })),
    ...seeds.map((seed) => ({ seed, source: 'master' as const })),
  ])(
    'numbered by the $source, seed $seed: replicas agree with it and with each other, whenever they checkpoint, collect and crash',
    async ({ seed, source }) => {
      const random = new SeededRandom(seed);
      const log: CommandBatch[] = [];
      const maker = new LogMaker(random, source);
      const replicas = [
        new Replica(new SeededRandom(seed + 1_000), log, source),
        new Replica(new SeededRandom(seed + 2_000), log, source),
      ];
      for (const replica of replicas) await replica.engine.checkpoint();
      for (let i = 0; i < 60; i++) log.push(maker.batch(expected(log, source).model.revision));
      for (const replica of replicas) await replica.catchUp();
      const { model, outcomes } = expected(log, source);
      for (const replica of replicas) {
        for (const [name, text] of replica.outcomes) expect(text, `outcome ${name}`).toBe(outcomes.get(name));
        expect(replica.outcomes.size).toBe(outcomes.size);
        expect(replica.state.keys).toBe(model.at(model.revision).size);
        for (let revision = Math.max(1, model.compactRevision); revision <= model.revision; revision++) {
          const want = model.run({ ...range('', '', { revision }), key: Buffer.from([0]) });
          expect(await readAll(replica.state, revision), `state at ${revision}`).toBe(want);
        }
      }
      const [first, second] = await Promise.all(replicas.map((replica) => replica.picture()));
      expect(first).toEqual(second);
    },
  );
});

test('a deletion of nothing changes no revision', async () => {
  const model = new NaiveKv();
  expect(model.run(del('a', 'z'))).toBe('delete(0;)');
  expect(model.revision).toBe(1);
});
