/**
 * Transfers between a few accounts, and other STMs (`kv.stm`) that read some accounts, or all, and change one.
 *
 * B1. Committed STMs are strictly serializable, those included that only read, and those that change one account
 *     depending on others. What a refused one would have written is nowhere; what was acknowledged is there once.
 * B2. Every run of a function shows one state, also a run that is repeated: it is a transaction of its own that reads.
 * B3. In each state that a run sees, transfers have kept the sum of all accounts, and each balance is that of its
 *     changes (`support/bank.ts` BK1, BK2).
 * B4. Accounts are used for a limited time only, so that many of them are created meanwhile, and histories stay short.
 */
import type { Stm } from 'remora';
import { checkTransactions, type TxnRecord, TxnRecorder } from '../../../checkers/index.ts';
import {
  type Bank,
  type BankWork,
  bankOf,
  drawWork,
  inOrder,
  opsOf,
  readAll,
  type Statement,
  statementOf,
  writeAll,
} from '../../../support/bank.ts';
import { Violation } from '../../common/violation.ts';
import { type ClientLife, lifeOf } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { ask, think, withHands } from './ask.ts';
import type { MakeWorkload, Workload } from './workload.ts';

/** The common prefix of the keys. */
export const ACCOUNTS = 'b/';
const ACCOUNTS_AT_A_TIME = 5;
/** B4. */
const PERIOD_MS = 6_000;
/** How much less often than others this workload acts: an STM is several reads and a write. */
const SELDOM = 3;

export const bank: MakeWorkload = (world) => new BankLoad(world);

class BankLoad implements Workload {
  readonly name = 'bank';
  readonly #world: World;
  readonly #history: TxnRecorder;
  #works = 0;
  #runs = 0;

  constructor(world: World) {
    this.#world = world;
    this.#history = new TxnRecorder(() => world.nowNs());
  }

  run(life: ClientLife): Promise<void> {
    return withHands(this.#world, this.#world.options.hands, async (hand) => {
      await think(this.#world, life, SELDOM);
      await this.#one(life, `${life.name}/b${hand}`);
    });
  }

  history(): readonly TxnRecord[] {
    return this.#history.records();
  }

  /** B1, B3. */
  async check(): Promise<void> {
    const { kv } = lifeOf(this.#world.clientAt(0)).remora;
    for (let period = 0; period <= this.#period; period++) {
      const one = bankAt(period);
      const open = this.#history.begin({ c: 'the end', ops: opsOf({ bank: one, reads: undefined, changes: [] }) });
      const { kvs } = await kv.range({ prefix: one.prefix });
      open.committed(truthOf(statementOf(one, inOrder(one, kvs))));
    }
    const { result, explanation } = checkTransactions(this.history());
    if (result !== 'ok') throw new Violation('strictly serializable STMs', explanation);
  }

  figures(): Readonly<Record<string, number>> {
    return { STMs: this.#works, 'runs of STMs': this.#runs };
  }

  get #period(): number {
    return Math.floor(this.#world.loop.monotonicMs() / PERIOD_MS);
  }

  /** `session`: of the history. */
  async #one(life: ClientLife, session: string): Promise<void> {
    const work = drawWork({ random: life.random, bank: bankAt(this.#period), name: `${session}:${this.#works++}` });
    const open = this.#history.begin({ c: session, ops: opsOf(work) });
    const asked = await ask({ world: this.#world, life, what: 'stm' }, () =>
      life.remora.kv.stm((t) => this.#run(t, work, `${session} runs`)),
    );
    if (asked.type === 'answer') open.committed(asked.value);
    else if (asked.type === 'unknown') open.unknown();
    else open.aborted();
  }

  /** B2. */
  async #run(t: Stm, work: BankWork, session: string): Promise<readonly (readonly string[])[]> {
    this.#runs++;
    const open = this.#history.begin({ c: session, ops: opsOf({ ...work, changes: [] }) });
    try {
      const pairs = await readAll(t, work);
      const lists = truthOf(statementOf(work.bank, pairs));
      open.committed(lists);
      writeAll(t, work, pairs);
      return lists;
    } catch (error) {
      open.aborted();
      throw error;
    }
  }
}

function bankAt(period: number): Bank {
  return bankOf(`${ACCOUNTS}${String(period).padStart(3, '0')}/`, ACCOUNTS_AT_A_TIME);
}

/** B3. */
function truthOf({ lists, wrong }: Statement): readonly (readonly string[])[] {
  if (wrong !== '') throw new Violation('the sum of all accounts stays', wrong);
  return lists;
}
