import { assert, FIRST_VERSION, nodeClock, type Span, silentLogger } from '@remora/base';
import type { DelayedHold, LockId, LockNotice, MarkedUntil } from '@remora/lock';
import {
  type Command,
  type CommandResult,
  type KvEvent,
  type KvOp,
  type PutOp,
  type RangeDescriptor,
  type RangeOp,
  type RevisionBlock,
  rangeOp,
} from '@remora/protocol';
import type { LockAudience, RangeMeter, RangeStart } from '../../src/state/effects.ts';
import { EntryRun } from '../../src/state/entry-run.ts';
import { HISTORY_SPACE, RESIDENT_SPANS } from '../../src/state/keys.ts';
import type { Outcome } from '../../src/state/outcomes/outcome-codec.ts';
import { RangeState } from '../../src/state/range-state.ts';
import { MemoryEngine } from '../../src/testing/memory-engine.ts';

export const DESCRIPTOR: RangeDescriptor = {
  rangeId: 2,
  start: new Uint8Array(0),
  end: new Uint8Array(0),
  epoch: { confVersion: 1, version: 1 },
  replicas: [{ replicaId: 1, nodeId: 1, type: 'voter' }],
  revisionSource: 'range',
};

/** Where all older versions lie. */
export const HISTORY: Span = { start: Buffer.from([HISTORY_SPACE]), end: Buffer.from([HISTORY_SPACE + 1]) };

export const CONF = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };

export function memoryEngine(clock = nodeClock()): MemoryEngine {
  return new MemoryEngine({
    options: { resident: RESIDENT_SPANS },
    clock,
    logger: silentLogger,
    onFailure: (error) => {
      throw error;
    },
  });
}

/** A range's state over a memory engine, driven one command per entry. For tests. */
export class StateBed {
  readonly engine: MemoryEngine;
  readonly events: { readonly revision: number; readonly events: readonly KvEvent[] }[] = [];
  readonly notices: LockNotice[] = [];
  readonly delayed: DelayedHold[] = [];
  /** Is told of marks in locks. */
  onMarkLeft: ((mark: MarkedUntil) => void) | undefined;
  /** Is told of grants that end. */
  onGrantEnded: ((lock: LockId, version: number) => void) | undefined;
  /** What was split off. */
  readonly children: RangeStart[] = [];
  /** Other ranges on the engine. */
  neighbours: readonly StateBed[] = [];
  /** Ranges whose keys came by merges. */
  readonly absorbed: number[] = [];
  state: RangeState;
  timeMs = 1_000;
  term = 1;
  /** Where changes take their revisions from, once the master numbers them. */
  block: RevisionBlock | undefined;
  /** The version of entries. */
  version = FIRST_VERSION;
  /** What the leader stamps on entries. */
  wallMs = 0;
  readonly #descriptor: RangeDescriptor;
  readonly #listeners: LockAudience | undefined;
  readonly #meter: RangeMeter | undefined;

  /**
   * Of the range that covers everything, unless another one is given, or what one begins with that was split off;
   * ranges may share an engine.
   */
  constructor(
    given: {
      readonly engine?: MemoryEngine;
      readonly descriptor?: RangeDescriptor;
      readonly start?: RangeStart;
      readonly listeners?: LockAudience;
      readonly meter?: RangeMeter;
    } = {},
  ) {
    const { engine = memoryEngine(), start, descriptor = start?.meta.descriptor ?? DESCRIPTOR } = given;
    this.engine = engine;
    this.#descriptor = descriptor;
    this.#listeners = given.listeners;
    this.#meter = given.meter;
    this.state = this.#open();
    if (start !== undefined) this.state.begin(start);
  }

  #open(): RangeState {
    const state = new RangeState(this.engine, {
      descriptor: this.#descriptor,
      conf: CONF,
      effects: {
        onEvents: (revision, events) => this.events.push({ revision, events }),
        onNotice: (notice) => this.notices.push(notice),
        ...(this.#listeners === undefined ? {} : { listeners: this.#listeners }),
        onHoldDelayed: (hold) => this.delayed.push(hold),
        onGrantEnded: (lock, version) => this.onGrantEnded?.(lock, version),
        onMarkLeft: (mark) => this.onMarkLeft?.(mark),
        meter: this.#meter,
        onLeaseGranted() {},
        onLeaseEnded() {},
        onSplit: (child) => this.children.push(child),
        onSealed() {},
        source: (rangeId) => {
          const source = this.neighbours.find((bed) => bed.state.rangeId === rangeId);
          assert(source !== undefined, `range ${rangeId} is on the engine too`);
          return source.state;
        },
        onMerged: (sourceId) => this.absorbed.push(sourceId),
      },
    });
    state.load();
    return state;
  }

  async checkpoint(): Promise<void> {
    this.state.stage();
    await this.engine.checkpoint();
  }

  /** Stops without a checkpoint and starts again from the last one. */
  crash(): void {
    this.engine.crash();
    this.state = this.#open();
  }

  /** Applies several commands as one entry. */
  async batch(commands: readonly { command: Command; requestId?: string; deadlineMs?: number }[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    const position = { index: this.state.applied.index + 1, term: this.term };
    const batch = {
      rangeTimeMs: this.timeMs,
      wallMs: this.wallMs,
      epoch: this.state.descriptor.epoch,
      version: this.version,
      ...(this.block === undefined ? {} : { block: this.block }),
      commands: commands.map(({ command, requestId = '', deadlineMs = 0 }) => ({ command, requestId, deadlineMs })),
    };
    const onOutcome = (i: number, outcome: Outcome): void => {
      outcomes[i] = outcome;
    };
    await EntryRun.begin(this.state, position, batch, { onOutcome }).apply();
    return outcomes;
  }

  async run(command: Command, request: { requestId?: string; deadlineMs?: number } = {}): Promise<Outcome> {
    const [outcome] = await this.batch([{ command, ...request }]);
    assert(outcome !== undefined, 'each command has an outcome');
    return outcome;
  }

  /** The result of a command that must succeed. */
  async ok(command: Command): Promise<CommandResult> {
    const outcome = await this.run(command);
    if (!outcome.ok) throw new Error(`${outcome.code}: ${outcome.message}`);
    return outcome.result;
  }
}

export function put(key: string, value: string, more: Partial<PutOp> = {}): PutOp {
  return {
    type: 'put',
    key: Buffer.from(key),
    value: Buffer.from(value),
    lease: 0n,
    prevKv: false,
    ignoreValue: false,
    ignoreLease: false,
    ...more,
  };
}

export function del(key: string, end?: string, prevKv = false): KvOp {
  return { type: 'delete', key: Buffer.from(key), prevKv, ...(end === undefined ? {} : { end: Buffer.from(end) }) };
}

export function range(key: string, end?: string, more: Partial<RangeOp> = {}): RangeOp {
  return rangeOp({ key: Buffer.from(key), ...(end !== undefined && { end: Buffer.from(end) }) }, more);
}

/** `key=value@mod/create/version` of each pair, to compare at a glance. */
export function show(result: CommandResult): string {
  if (result.type !== 'range') return result.type;
  return result.kvs
    .map((kv) => `${Buffer.from(kv.key)}=${Buffer.from(kv.value)}@${kv.modRevision}/${kv.createRevision}/${kv.version}`)
    .join(' ');
}
