/**
 * The replicated state machine of the simulation: a list of the numbers that clients wrote, and a checksum over
 * everything that was applied, including positions and memberships. Only checkpoints and installed snapshots make it
 * durable.
 */
import { assert, type Clock, type Random, sleep } from '@remora/base';
import type {
  ConfState,
  Entry,
  SnapshotMeta,
  SnapshotReceiver,
  StateMachine,
  StateMachineSnapshot,
} from '@remora/raft';
import { writtenValue } from './checks/written-values.ts';
import type { Engine, MachineState } from './env/engine.ts';

export interface MachineOptions {
  /** How many of a thousand applies have to wait. */
  readonly slowApplyPerMille: number;
  readonly snapshotChunkBytes: number;
  /** The longest time to store something in the engine. */
  readonly storeMsMax: number;
}

/** Observes what the machine does. */
interface MachineWatcher {
  /** Called before the entry takes effect here. */
  applied(entry: Entry, checksum: number, conf: ConfState): void;
  installed(meta: SnapshotMeta, checksum: number): void;
  snapshot(index: number): void;
}

export interface MachineDeps {
  readonly groupId: number;
  readonly replicaId: number;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: Random;
  readonly options: MachineOptions;
  readonly watcher: MachineWatcher;
}

type Waiting = { readonly term: number; readonly done: (applied: boolean) => void };

export class Machine implements StateMachine {
  readonly #deps: MachineDeps;
  #state: MachineState;
  /** Pending proposals of this node, by index. */
  readonly #waiting = new Map<number, Waiting>();
  #busy = false;

  constructor(deps: MachineDeps, state: MachineState) {
    this.#deps = deps;
    this.#state = state;
  }

  get state(): MachineState {
    return this.#state;
  }

  /** A call of the host is in progress: the state must not be stored. */
  get busy(): boolean {
    return this.#busy;
  }

  /** Calls `done` when the entry at `index` is applied, with whether that entry is the one of `term`. */
  whenApplied(index: number, term: number, done: (applied: boolean) => void): void {
    this.#waiting.get(index)?.done(false);
    this.#waiting.set(index, { term, done });
  }

  apply(entries: readonly Entry[], conf: ConfState): void | Promise<void> {
    assert(!this.#busy, 'calls of one group are serial');
    for (const entry of entries) this.#applyOne(entry, conf);
    const { random, options, clock } = this.#deps;
    if (options.slowApplyPerMille === 0 || random.int(1000) >= options.slowApplyPerMille) return;
    this.#busy = true;
    return sleep(clock, 1 + random.int(60)).then(() => {
      this.#busy = false;
    });
  }

  #applyOne(entry: Entry, conf: ConfState): void {
    const { index, term, type } = entry;
    const { applied, values } = this.#state;
    assert(index === applied.index + 1, `entry ${index} follows ${applied.index}`);
    const value = writtenValue(entry);
    let checksum = mix(mix(mix(this.#state.checksum, index), term), value);
    if (type === 'conf') checksum = mix(checksum, checksumOf(conf));
    let { count } = this.#state;
    if (value !== 0) values[count++] = value;
    this.#deps.watcher.applied(entry, checksum, conf);
    this.#state = { applied: { index, term }, conf, checksum, values, count };
    const waiting = this.#waiting.get(index);
    if (waiting === undefined) return;
    this.#waiting.delete(index);
    waiting.done(waiting.term === term);
  }

  roleChanged(): void {
    assert(!this.#busy, 'calls of one group are serial');
  }

  snapshot(): StateMachineSnapshot {
    assert(!this.#busy, 'a snapshot is taken between applies');
    const { applied, conf } = this.#state;
    this.#deps.watcher.snapshot(applied.index);
    return { meta: { ...applied, conf }, chunks: this.#chunks(encodeState(this.#state)), release: () => undefined };
  }

  async *#chunks(bytes: Buffer): AsyncIterable<Uint8Array> {
    const { random, clock, options } = this.#deps;
    for (let at = 0; at < bytes.length; at += options.snapshotChunkBytes) {
      if (random.int(4) === 0) await sleep(clock, random.int(30));
      yield bytes.subarray(at, at + options.snapshotChunkBytes);
    }
  }

  install(meta: SnapshotMeta): SnapshotReceiver {
    assert(!this.#busy, 'calls of one group are serial');
    this.#busy = true;
    const chunks: Uint8Array[] = [];
    return {
      chunk: async (bytes) => {
        if (this.#deps.random.int(4) === 0) await this.#store();
        chunks.push(bytes);
      },
      finish: async () => {
        const state = decodeState(Buffer.concat(chunks));
        await this.#store();
        const { groupId, replicaId, engine, watcher } = this.#deps;
        assert(state.applied.index === meta.index, 'a snapshot is of the position that its header names');
        watcher.installed(meta, state.checksum);
        engine.store(groupId, replicaId, state);
        this.#state = state;
        this.#busy = false;
        this.#superseded(meta.index);
      },
      abort: () => {
        this.#busy = false;
      },
    };
  }

  /** A snapshot covered proposals up to `index`: their outcome is unknown here. */
  #superseded(index: number): void {
    for (const at of this.#waiting.keys()) if (at <= index) this.#waiting.delete(at);
  }

  #store(): Promise<void> {
    const { clock, random, options } = this.#deps;
    return sleep(clock, random.int(options.storeMsMax + 1));
  }
}

function mix(hash: number, value: number): number {
  return Math.imul(hash ^ value ^ (value / 2 ** 32), 0x01000193) ^ (hash >>> 15);
}

function checksumOf(conf: ConfState): number {
  let sum = conf.autoLeave ? 1 : 2;
  for (const list of [conf.voters, conf.votersOutgoing, conf.learners, conf.learnersNext]) {
    sum = mix(sum, list.length);
    for (const id of list) sum = mix(sum, id);
  }
  return sum;
}

function encodeState({ applied, conf, checksum, values, count }: MachineState): Buffer {
  return Buffer.from(JSON.stringify({ applied, conf, checksum, values: values.slice(0, count), count }));
}

function decodeState(bytes: Buffer): MachineState {
  return JSON.parse(bytes.toString());
}
