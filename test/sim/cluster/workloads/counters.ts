/**
 * Counters that several clients increment (`kv.increment`). Some increments have a name (`once`) and are repeated after
 * unknown outcomes, also by other clients, and also when nothing was lost.
 *
 * Each counter is a linearizable object that counts every increment once (`CounterCheck`):
 * I1. No update is lost: two increments never have the same sum, and sums follow the order of real time.
 * I2. An increment that was answered has been added once. One that was refused has not been added. One of unknown
 *     outcome has been added once at most.
 * I3. All calls with one name add once altogether, and each of them that is answered has the sum after that one
 *     increment. Its record exists as long as nobody deletes it.
 */
import { CounterCheck, type CounterEvent } from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import { type ClientLife, lifeOf } from '../sdk-client.ts';
import type { World } from '../world.ts';
import { type Answer, ask, think, withHands } from './ask.ts';
import type { MakeWorkload, Workload } from './workload.ts';

/** The common prefix of the keys. */
export const COUNTERS = 'c/';
/** What each counter is incremented by. */
const STEPS = [1, 7, -3] as const;
/** How often a client repeats an increment with a name, until it is answered. */
const REPEATS_MAX = 4;
/** Names that others may repeat. */
const NAMES_MAX = 12;
/** How much less often than others this workload acts: an increment is a read and a write, or several. */
const SELDOM = 2;

interface Counter {
  readonly key: string;
  readonly by: number;
}

interface Named {
  readonly counter: Counter;
  readonly name: string;
}

const ALL: readonly Counter[] = STEPS.map((by, i) => ({ key: `${COUNTERS}${i}`, by }));

export const counters: MakeWorkload = (world) => new CounterLoad(world);

class CounterLoad implements Workload {
  readonly name = 'counters';
  readonly #world: World;
  readonly #check = new CounterCheck();
  /** The newest names of all clients. */
  readonly #names: Named[] = [];
  #calls = 0;
  #repeated = 0;
  #afterUnknown = 0;

  constructor(world: World) {
    this.#world = world;
  }

  run(life: ClientLife): Promise<void> {
    return withHands(this.#world, this.#world.options.hands, async () => {
      await think(this.#world, life, SELDOM);
      const kind = life.random.int(8);
      const counter = ALL[life.random.int(ALL.length)] ?? { key: COUNTERS, by: 1 };
      const known = this.#names[life.random.int(NAMES_MAX)];
      if (kind === 0) await this.#read(life, counter);
      else if (kind < 4) await this.#add(life, counter, undefined);
      else if (kind === 4 && known !== undefined) await this.#add(life, known.counter, known.name);
      else await this.#once(life, counter);
    });
  }

  /** I2, I3. */
  async check(): Promise<void> {
    const life = lifeOf(this.#world.clientAt(0));
    for (const counter of ALL) {
      await this.#read(life, counter);
      const prefix = recordOf({ counter, name: '' });
      const { kvs } = await life.remora.kv.range({ prefix });
      const counts = kvs.map(
        (pair) => [pair.key.toString().slice(prefix.length), countOf(counter, pair.text())] as const,
      );
      this.#see({ type: 'records', counter: counter.key, counts });
    }
    this.#world.report(this.#check.finish());
  }

  figures(): Readonly<Record<string, number>> {
    return {
      increments: this.#calls,
      'increments repeated': this.#repeated,
      'repeated after an unknown outcome': this.#afterUnknown,
    };
  }

  async #read(life: ClientLife, { key, by }: Counter): Promise<void> {
    const call = `${life.name}:i${this.#calls++}`;
    this.#see({ type: 'reads', counter: key, call });
    const asked = await ask({ world: this.#world, life, what: 'get of a counter' }, () =>
      this.#world.revisions.current(() => life.remora.kv.range(key)),
    );
    if (asked.type !== 'answer') return;
    this.#see({ type: 'read', call, count: countOf({ key, by }, asked.value.kvs[0]?.text() ?? '0') });
  }

  /** I3. */
  async #once(life: ClientLife, counter: Counter): Promise<void> {
    const name = `${life.name}:n${this.#calls}`;
    this.#names.push({ counter, name });
    if (this.#names.length > NAMES_MAX) this.#names.shift();
    for (let repeats = 0; repeats <= REPEATS_MAX; repeats++) {
      const { type } = await this.#add(life, counter, name);
      if (type === 'answer' && life.random.int(4) > 0) return;
      if (type === 'unknown') this.#afterUnknown++;
    }
  }

  async #add(life: ClientLife, counter: Counter, name: string | undefined): Promise<Answer<unknown>> {
    const { key, by } = counter;
    const call = `${life.name}:i${this.#calls++}`;
    const once = name === undefined ? undefined : recordOf({ counter, name });
    this.#see({ type: 'adds', counter: key, call, name });
    const asked = await ask({ world: this.#world, life, what: `increment ${key} ${name ?? ''}` }, () =>
      life.remora.kv.increment(key, { by, once }),
    );
    if (asked.type === 'refused') this.#see({ type: 'refused', call });
    if (asked.type !== 'answer') return asked;
    const { value, revision, repeated } = asked.value;
    this.#see({ type: 'added', call, count: countOf(counter, String(value)), revision, repeated });
    if (repeated) {
      this.#repeated++;
      return asked;
    }
    for (const put of once === undefined ? [key] : [key, once]) {
      this.#world.changed({ revision, key: put, kind: 'put', value: String(value) });
    }
    return asked;
  }

  #see(event: CounterEvent): void {
    this.#world.report(this.#check.observe(event));
  }
}

/** The key that records an increment. */
function recordOf({ counter, name }: Named): string {
  return `${counter.key}/by/${name}`;
}

/** How many increments make this sum. */
function countOf({ key, by }: Counter, value: string): number {
  const count = Number(value) / by;
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new Violation('counter: nothing is made up', `${key}, which is incremented by ${by}, is ${value}`);
}
