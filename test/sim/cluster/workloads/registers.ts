/**
 * A few keys under contention: get, put, delete, compare-and-set, range reads and range deletes. Every value is written
 * once, so a lost, repeated or stale write shows (linearizability, Herlihy & Wing 1990).
 *
 * L1. Linearizability is local: a range operation is checked as one operation on each of its keys. The transactions of
 *     `lists.ts` check that it happens at one moment.
 * L2. Each key is written to for a limited time only: every write of unknown outcome may take effect at any later time,
 *     and with too many of them the search for an order of the key's operations does not end.
 */
import type { Random } from '@remora/base';
import {
  checkLinearizable,
  type HistoryRecord,
  HistoryRecorder,
  type OpenRequest,
  type Request,
  registerModel,
  type Value,
} from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { ask, think, withHands } from './ask.ts';
import type { MakeWorkload, Workload } from './workload.ts';

/** The common prefix of the keys. */
export const REGISTERS = 'r';
/** The number of keys that are written to at a time (L2). */
const KEYS = 4;
const PERIOD_MS = 5_000;

/** The keys that are written to now, in their order. */
export function busyRegisters({ loop }: World): readonly string[] {
  return registersOf(Math.floor(loop.monotonicMs() / PERIOD_MS));
}

export const registers: MakeWorkload = (world) => new RegisterLoad(world);

/** The knowledge of one client. */
interface Hand {
  readonly life: ClientLife;
  /** Makes values unique. */
  values: number;
  /** The last value read, by key. */
  readonly seen: Map<string, Value>;
}

class RegisterLoad implements Workload {
  readonly name = 'registers';
  readonly #world: World;
  readonly #history: HistoryRecorder;

  constructor(world: World) {
    this.#world = world;
    this.#history = new HistoryRecorder(() => world.nowNs());
  }

  run(life: ClientLife): Promise<void> {
    const hand: Hand = { life, values: 0, seen: new Map() };
    return withHands(this.#world, this.#world.options.hands, async () => {
      await think(this.#world, life, 1.5);
      const kind = life.random.int(20);
      if (kind === 0) await this.#deleteRange(hand);
      else if (kind < 3) await this.#readRange(hand);
      else await this.#one(hand, this.#draw(hand));
    });
  }

  history(): readonly HistoryRecord[] {
    return this.#history.records();
  }

  check(): void {
    const { result, explanation } = checkLinearizable(registerModel, this.history());
    if (result !== 'ok') throw new Violation('linearizable registers', explanation);
  }

  #draw(hand: Hand): Request {
    const { name, random } = hand.life;
    const k = pick(random, busyRegisters(this.#world));
    const v = `${name}:${hand.values++}`;
    const kind = random.int(20);
    if (kind === 0) return { c: name, k: pick(random, this.#earlier()), op: 'get' };
    if (kind < 8) return { c: name, k, op: 'get' };
    if (kind < 13) return { c: name, k, op: 'put', v };
    if (kind < 15) return { c: name, k, op: 'del' };
    return { c: name, k, op: 'cas', x: hand.seen.get(k) ?? null, v };
  }

  /** Keys that were written to earlier, where a late write would show. */
  #earlier(): readonly string[] {
    const period = Math.floor(this.#world.loop.monotonicMs() / PERIOD_MS);
    return registersOf(Math.max(0, period - 1));
  }

  async #one(hand: Hand, request: Request): Promise<void> {
    const open = this.#history.begin(request);
    const options = { world: this.#world, life: hand.life, what: `${request.op} ${request.k}` };
    const asked = await ask(options, () => this.#perform(hand.life, request));
    if (asked.type !== 'answer') return failed([open], asked.type);
    open.done(asked.value);
    if (request.op === 'get') hand.seen.set(request.k, asked.value.out ?? null);
  }

  async #perform(
    { remora: { kv } }: ClientLife,
    { op, k, v, x }: Request,
  ): Promise<{ readonly ok: boolean; readonly out?: Value }> {
    const { revisions } = this.#world;
    const value = String(v);
    switch (op) {
      case 'get': {
        const { kvs } = await revisions.current(() => kv.range(k));
        return { ok: true, out: kvs[0]?.value.toString() ?? null };
      }
      case 'put': {
        const { revision } = await revisions.written(() => kv.put(k, value));
        this.#world.changed({ revision, key: k, kind: 'put', value });
        return { ok: true };
      }
      case 'del': {
        const { revision, deleted } = await revisions.current(() => kv.delete(k));
        if (deleted > 0) this.#world.changed({ revision, key: k, kind: 'delete' });
        return { ok: true };
      }
      default: {
        const was =
          typeof x === 'string'
            ? ({ key: k, target: 'value', is: '=', than: x } as const)
            : ({ key: k, target: 'version', is: '=', than: 0 } as const);
        const { succeeded, revision } = await revisions.current(() =>
          kv.txn({ compare: [was], success: [{ put: k, value }] }),
        );
        if (succeeded) this.#world.changed({ revision, key: k, kind: 'put', value });
        return { ok: succeeded };
      }
    }
  }

  /** L1. */
  async #readRange({ life, seen }: Hand): Promise<void> {
    const keys = drawSpan(life, busyRegisters(this.#world));
    const open = keys.map((k) => this.#history.begin({ c: life.name, k, op: 'get' }));
    const asked = await ask({ world: this.#world, life, what: 'range' }, () =>
      this.#world.revisions.current(() => life.remora.kv.range(spanOf(keys))),
    );
    if (asked.type !== 'answer') return failed(open, asked.type);
    const values = new Map(asked.value.kvs.map(({ key, value }) => [key.toString(), value.toString()]));
    for (const [i, key] of keys.entries()) {
      const out = values.get(key) ?? null;
      open[i]?.done({ ok: true, out });
      seen.set(key, out);
    }
  }

  /** L1. */
  async #deleteRange({ life }: Hand): Promise<void> {
    const keys = drawSpan(life, busyRegisters(this.#world));
    const open = keys.map((k) => this.#history.begin({ c: life.name, k, op: 'del' }));
    const asked = await ask({ world: this.#world, life, what: 'deleteRange' }, () =>
      this.#world.revisions.current(() => life.remora.kv.delete(spanOf(keys), { prevKv: true })),
    );
    if (asked.type !== 'answer') return failed(open, asked.type);
    for (const one of open) one.done({ ok: true });
    const { revision, prev } = asked.value;
    for (const { key } of prev) this.#world.changed({ revision, key: key.toString(), kind: 'delete' });
  }
}

function registersOf(period: number): readonly string[] {
  return Array.from({ length: KEYS }, (_, i) => `${REGISTERS}${String(period).padStart(3, '0')}${i}`);
}

function pick(random: Random, keys: readonly string[]): string {
  return keys[random.int(keys.length)] ?? '';
}

function failed(open: readonly OpenRequest[], how: 'refused' | 'unknown'): void {
  for (const one of open) {
    if (how === 'unknown') one.unknown();
    else one.drop();
  }
}

/** Neighbouring keys. */
function drawSpan({ random }: ClientLife, keys: readonly string[]): readonly string[] {
  const first = random.int(keys.length - 1);
  return keys.slice(first, first + 2 + random.int(keys.length - 1));
}

function spanOf(keys: readonly string[]): { readonly start: string; readonly end: string } {
  return { start: keys[0] ?? '', end: `${keys.at(-1)}\0` };
}
