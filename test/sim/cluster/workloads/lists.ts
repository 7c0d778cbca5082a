/**
 * Transactions over a few busy keys: appends to lists, reads of lists, range reads and range deletes; strictly
 * serializable together (test/checkers/txn). Like Jepsen's append workload for etcd: a client reads, and then commits
 * on the condition that nothing that it read has changed.
 *
 * T1. A transaction whose condition failed changed nothing; the reads of its other branch are a transaction of their
 *     own.
 * T2. A read that need not be current returns the complete state of some earlier moment.
 */
import { checkTransactions, type OpenTxn, type TxnOp, type TxnRecord, TxnRecorder } from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { ask, think, withHands } from './ask.ts';
import {
  appended,
  CLEARS,
  elementsOf,
  type Guard,
  getOps,
  LIST_KEYS,
  LISTS_PREFIX,
  LISTS_SPAN,
  ListView,
  unchanged,
} from './list-view.ts';
import type { MakeWorkload, Workload } from './workload.ts';

const KEYS_PER_TXN_MAX = 3;
const ELEMENTS_MAX = 2;
const GUARDS: readonly Guard[] = ['mod', 'mod', 'version', 'value', 'range'];

export const lists: MakeWorkload = (world) => new ListLoad(world);

/** One hand of a client: a session of the history. */
interface Hand {
  readonly life: ClientLife;
  readonly session: string;
  /** Makes elements unique. */
  elements: number;
  /** Its last read. */
  view: ListView | undefined;
}

class ListLoad implements Workload {
  readonly name = 'lists';
  readonly #world: World;
  readonly #history: TxnRecorder;

  constructor(world: World) {
    this.#world = world;
    this.#history = new TxnRecorder(() => world.nowNs());
  }

  run(life: ClientLife): Promise<void> {
    const hands: Hand[] = [];
    return withHands(this.#world, this.#world.options.hands, async (i) => {
      hands[i] ??= { life, session: `${life.name}/${i}`, elements: 0, view: undefined };
      await think(this.#world, life, 1.5);
      await this.#one(hands[i]);
    });
  }

  history(): readonly TxnRecord[] {
    return this.#history.records();
  }

  check(): void {
    const { result, explanation } = checkTransactions(this.history());
    if (result !== 'ok') throw new Violation('strictly serializable transactions', explanation);
  }

  async #one(hand: Hand): Promise<void> {
    const { random } = hand.life;
    const kind = random.int(24);
    if (kind === 0) return this.#readOld(hand);
    if (kind < 6) hand.view = await this.#read(hand);
    else {
      // With an earlier view the condition often fails.
      const view = hand.view !== undefined && random.int(2) === 0 ? hand.view : await this.#read(hand);
      hand.view = undefined;
      if (view === undefined) return;
      if (kind === 6) await this.#clear(hand, view);
      else hand.view = await this.#append(hand, view);
    }
  }

  // ------------------------------------------------------------------------------------------ reads

  /** A range read, whole or of its first keys, or a transaction of several gets. */
  async #read(hand: Hand): Promise<ListView | undefined> {
    const { life } = hand;
    const { random } = life;
    const kind = random.int(3);
    const keys = kind === 0 ? drawKeys(life) : LIST_KEYS;
    const limit = kind === 1 ? 1 + random.int(LIST_KEYS.length) : 0;
    const open = this.#history.begin({ c: hand.session, ops: [] });
    const question = () =>
      this.#world.revisions.current(() => (kind === 0 ? getAll(life, keys) : getRange(life, limit)));
    const asked = await ask({ world: this.#world, life, what: kind === 0 ? 'readTxn' : 'range' }, question);
    if (asked.type !== 'answer') {
      open.aborted();
      return undefined;
    }
    const { view } = asked.value;
    open.committedAs(view.reads(view.keys));
    return view;
  }

  /** T2. */
  async #readOld(hand: Hand): Promise<void> {
    const { life, session } = hand;
    const open = this.#history.begin({ c: `${session} without order`, ops: [], t0: 0 });
    const options = { world: this.#world, life, what: 'serializable range' };
    const asked = await ask(options, () => life.remora.kv.range({ prefix: LISTS_PREFIX }, { serializable: true }));
    if (asked.type !== 'answer') return open.aborted();
    const view = new ListView([CLEARS, ...LIST_KEYS], asked.value.kvs);
    open.committedAs(view.reads(LIST_KEYS));
  }

  // ------------------------------------------------------------------------------------------ writes

  /** Appends to some of the lists that were read. Returns what the transaction saw if it changed nothing. */
  async #append(hand: Hand, view: ListView): Promise<ListView | undefined> {
    const { life, session } = hand;
    const { random } = life;
    const keys = view.keys.filter(() => random.int(3) > 0).slice(0, KEYS_PER_TXN_MAX);
    if (keys.length === 0) return undefined;
    const writes = keys.slice(random.int(keys.length)).map((key) => {
      const more = Array.from({ length: 1 + random.int(ELEMENTS_MAX) }, () => `${session}:${hand.elements++}`);
      return { key, more, value: appended(view.list(key), more) };
    });
    const appends = writes.flatMap(({ key, more }): TxnOp[] =>
      more.map((v) => ({ k: view.nameOf(key), op: 'append', v })),
    );
    const open = this.#beginGuarded(hand, [...view.reads(keys), ...appends]);
    const asked = await ask({ world: this.#world, life, what: 'append' }, () =>
      this.#world.revisions.current(() =>
        life.remora.kv.txn({
          compare: unchanged(view, keys, drawGuard(life)),
          success: [...writes.map(({ key: put, value }) => ({ put, value })), { get: writes[0]?.key ?? CLEARS }],
          failure: getOps(keys),
        }),
      ),
    );
    if (asked.type !== 'answer') {
      open.failed(asked.type);
      return undefined;
    }
    const { succeeded, results, revision } = asked.value;
    if (!succeeded) return open.otherwise(ListView.ofAnswers(keys, results));
    const last = results.at(-1);
    const found = last?.type === 'get' ? last.kvs[0] : undefined;
    const readBack: readonly TxnOp[] = [
      { k: view.nameOf(writes[0]?.key ?? CLEARS), op: 'get', out: found === undefined ? [] : elementsOf(found.value) },
    ];
    open.committedAs([...view.reads(keys), ...appends, ...readBack]);
    for (const { key, value } of writes) this.#world.changed({ revision, key, kind: 'put', value });
    return undefined;
  }

  /** Deletes all lists. The deleted pairs show the earlier lists. */
  async #clear(hand: Hand, view: ListView): Promise<void> {
    const { life, session } = hand;
    const clear = `${session}:${hand.elements++}`;
    const value = appended(view.list(CLEARS), [clear]);
    const append: TxnOp = { k: CLEARS, op: 'append', v: clear };
    const open = this.#beginGuarded(hand, [append]);
    const asked = await ask({ world: this.#world, life, what: 'clear' }, () =>
      this.#world.revisions.current(() =>
        life.remora.kv.txn({
          compare: unchanged(view, [], 'mod'),
          success: [
            { delete: LISTS_SPAN, prevKv: true },
            { put: CLEARS, value },
          ],
          failure: getOps([]),
        }),
      ),
    );
    if (asked.type !== 'answer') return open.failed(asked.type);
    const { succeeded, results, revision } = asked.value;
    if (!succeeded) return void open.otherwise(ListView.ofAnswers([], results));
    const [deleted] = results;
    const gone = deleted?.type === 'delete' ? deleted.prev : [];
    const before = new ListView(LIST_KEYS, gone);
    const reads = LIST_KEYS.map((key): TxnOp => ({ k: view.nameOf(key), op: 'get', out: before.list(key).elements }));
    open.committedAs([...view.reads([]), ...reads, append]);
    for (const { key } of gone) this.#world.changed({ revision, key: key.toString(), kind: 'delete' });
    this.#world.changed({ revision, key: CLEARS, kind: 'put', value });
  }

  /** T1: records the transaction in both forms, with its condition true and false. */
  #beginGuarded({ session: c }: Hand, ops: readonly TxnOp[]): Guarded {
    return new Guarded(this.#history.begin({ c, ops }), this.#history.begin({ c, ops: [] }));
  }
}

class Guarded {
  readonly #meant: OpenTxn;
  readonly #other: OpenTxn;

  constructor(meant: OpenTxn, other: OpenTxn) {
    this.#meant = meant;
    this.#other = other;
  }

  committedAs(ops: readonly TxnOp[]): void {
    this.#meant.committedAs(ops);
    this.#other.aborted();
  }

  /** The condition failed. */
  otherwise(view: ListView): ListView {
    this.#meant.aborted();
    this.#other.committedAs(view.reads(view.keys));
    return view;
  }

  failed(how: 'refused' | 'unknown'): void {
    if (how === 'unknown') this.#meant.unknown();
    else this.#meant.aborted();
    this.#other.aborted();
  }
}

interface Read {
  readonly revision: number;
  readonly view: ListView;
}

async function getAll({ remora }: ClientLife, keys: readonly string[]): Promise<Read> {
  const { results, revision } = await remora.kv.txn({ success: getOps(keys) });
  return { revision, view: ListView.ofAnswers(keys, results) };
}

/** `limit`: 0 reads all. The keys behind the last key of a limited read are unknown. */
async function getRange({ remora }: ClientLife, limit: number): Promise<Read> {
  const { kvs, more, revision } = await remora.kv.range({ prefix: LISTS_PREFIX }, { limit });
  if (!more) return { revision, view: new ListView([CLEARS, ...LIST_KEYS], kvs, revision) };
  const last = kvs.at(-1)?.key.toString() ?? '';
  return {
    revision,
    view: new ListView(
      [CLEARS, ...LIST_KEYS].filter((key) => key <= last),
      kvs,
    ),
  };
}

function drawKeys({ random }: ClientLife): readonly string[] {
  const first = random.int(LIST_KEYS.length);
  return LIST_KEYS.slice(first, first + 1 + random.int(KEYS_PER_TXN_MAX));
}

function drawGuard({ random }: ClientLife): Guard {
  return GUARDS[random.int(GUARDS.length)] ?? 'mod';
}
