/**
 * Checks whether counters count each increment once, by the answers to their callers. All increments of a counter add
 * the same amount, so its value is a number of increments, its *count*. Events come in the order of real time.
 *
 * Calls with the same `name` repeat one increment. A call without an answer may have been applied, now or later; one
 * that was `refused` was not.
 *
 * Promises:
 * CO1. No two increments have the same count. (A lost update.)
 * CO2. An increment has a count above all counts that were answered before it began. A read shows no lower count than
 *      those. Revisions grow with the counts.
 * CO3. All calls with one name are answered with the same count and revision, and one of them at most says that it has
 *      made the increment. If none does, another call has, whose answer was lost.
 * CO4. Counts that nobody was answered are those of calls that were not answered: of one each, which had begun before a
 *      higher count was answered.
 * CO5. At the end, the records of the names are those of the increments that were made, with their counts.
 *
 * CO1, CO2 and CO4 together are exact: they hold if and only if the history of increments and reads is linearizable.
 * For CO4, each missing count needs an unanswered increment of its own that had begun in time. The time until which it
 * must have begun grows with the count, so the earliest ones can be given to the lowest counts (Hall's theorem).
 */
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export type CounterEvent =
  /** A call of an increment begins. Absent `name`: it is not repeated. */
  | { readonly type: 'adds'; readonly counter: string; readonly call: string; readonly name?: string | undefined }
  | {
      readonly type: 'added';
      readonly call: string;
      readonly count: number;
      readonly revision: number;
      /** The answer says that an earlier call has made it. */
      readonly repeated: boolean;
    }
  | { readonly type: 'refused'; readonly call: string }
  | { readonly type: 'reads'; readonly counter: string; readonly call: string }
  | { readonly type: 'read'; readonly call: string; readonly count: number }
  /** All records of names that exist at the end, when nothing is in progress. */
  | {
      readonly type: 'records';
      readonly counter: string;
      readonly counts: readonly (readonly [name: string, count: number])[];
    };

interface Call {
  readonly counter: Counter;
  readonly increment: Increment | undefined;
  /** The highest count that was answered before the call began. */
  readonly floor: number;
  readonly at: number;
  refused: boolean;
  /** CO3: whether its answer says that it has made the increment. Absent: there is no answer. */
  made?: boolean;
}

interface Increment {
  readonly name: string;
  /** It may be repeated, and has a record. */
  readonly named: boolean;
  readonly calls: Call[];
  count?: number;
  revision?: number;
}

interface Counter {
  readonly name: string;
  /** The highest count that was answered. */
  highest: number;
  readonly increments: Map<string, Increment>;
  readonly byCount: Map<number, Increment>;
  /** When which count was answered as reached. */
  readonly reached: { readonly at: number; readonly count: number }[];
}

export class CounterCheck implements Check<CounterEvent> {
  readonly name = 'counter';
  readonly #counters = new Map<string, Counter>();
  readonly #calls = new Map<string, Call>();
  #now = 0;

  observe(event: CounterEvent): readonly Finding[] {
    this.#now++;
    switch (event.type) {
      case 'adds': {
        const counter = this.#counter(event.counter);
        const increment = incrementOf(counter, { name: event.name ?? event.call, named: event.name !== undefined });
        this.#begin(event.call, counter, increment);
        return NOTHING;
      }
      case 'reads':
        this.#begin(event.call, this.#counter(event.counter), undefined);
        return NOTHING;
      case 'refused': {
        const call = this.#calls.get(event.call);
        if (call !== undefined) call.refused = true;
        return NOTHING;
      }
      case 'added':
        return this.#added(event);
      case 'read':
        return this.#read(event);
      case 'records':
        return [...recorded(this.#counter(event.counter), new Map(event.counts))];
    }
  }

  finish(): readonly Finding[] {
    const counters = [...this.#counters.values()];
    return counters.flatMap((counter) => [...revisionsOf(counter), ...missingOf(counter)]);
  }

  #counter(name: string): Counter {
    const known = this.#counters.get(name);
    if (known !== undefined) return known;
    const counter: Counter = { name, highest: 0, increments: new Map(), byCount: new Map(), reached: [] };
    this.#counters.set(name, counter);
    return counter;
  }

  #begin(name: string, counter: Counter, increment: Increment | undefined): void {
    const call: Call = { counter, increment, floor: counter.highest, at: this.#now, refused: false };
    increment?.calls.push(call);
    this.#calls.set(name, call);
  }

  #added({ call: name, count, revision, repeated }: Extract<CounterEvent, { type: 'added' }>): readonly Finding[] {
    const call = this.#calls.get(name);
    if (call?.increment === undefined) return NOTHING;
    const { counter, increment } = call;
    call.made = !repeated;
    this.#reached(counter, count);
    const told = `${name} of ${increment.name} at ${counter.name} has count ${count} at revision ${revision}`;
    if (increment.count !== undefined) {
      if (increment.count === count && increment.revision === revision) return made(increment, told);
      const before = `had count ${increment.count} at revision ${increment.revision}`;
      return [violation('counter: a name counts once', `${told}, and ${before}`)]; // CO3
    }
    increment.count = count;
    increment.revision = revision;
    const rival = counter.byCount.get(count);
    if (rival !== undefined) return [violation('counter: no lost update', `${told}, as has ${rival.name}`)]; // CO1
    counter.byCount.set(count, increment);
    const floor = Math.min(...makersOf(call, increment).map((each) => each.floor));
    if (count <= floor) return [violation('counter: in real time', `${told}, and ${floor} was reached before`)]; // CO2
    return made(increment, told);
  }

  #read({ call: name, count }: Extract<CounterEvent, { type: 'read' }>): readonly Finding[] {
    const call = this.#calls.get(name);
    if (call === undefined) return NOTHING;
    const { counter, floor } = call;
    this.#reached(counter, count);
    if (count >= floor) return NOTHING;
    return [violation('counter: in real time', `${name} read ${count} at ${counter.name}, and ${floor} was before`)];
  }

  #reached(counter: Counter, count: number): void {
    counter.highest = Math.max(counter.highest, count);
    counter.reached.push({ at: this.#now, count });
  }
}

function incrementOf({ increments }: Counter, { name, named }: Pick<Increment, 'name' | 'named'>): Increment {
  const known = increments.get(name);
  if (known !== undefined) return known;
  const increment: Increment = { name, named, calls: [] };
  increments.set(name, increment);
  return increment;
}

/** The calls that may have made the increment that this one is answered with. */
function makersOf(call: Call, { calls }: Increment): readonly Call[] {
  return call.made === true ? [call] : calls.filter(({ refused }) => !refused);
}

/** CO3. */
function made({ calls }: Increment, told: string): readonly Finding[] {
  const makers = calls.filter((call) => call.made === true);
  if (makers.length > 1)
    return [violation('counter: a name counts once', `${told}, and ${makers.length} calls made it`)];
  const others = calls.filter((call) => !call.refused && call.made !== false);
  if (others.length > 0) return NOTHING;
  return [violation('counter: nothing is made up', `${told}, and no call can have made it`)];
}

/** CO5. Increments without a record are known not to be made. */
function* recorded(counter: Counter, records: ReadonlyMap<string, number>): Generator<Finding> {
  for (const [name, count] of records) {
    const told = `${name} at ${counter.name} is recorded with count ${count}`;
    const increment = counter.increments.get(name);
    if (increment === undefined || increment.calls.every(({ refused }) => refused)) {
      yield violation('counter: nothing is made up', `${told}, and nobody has made it`);
    } else if (increment.count === undefined) {
      const rival = counter.byCount.get(count);
      if (rival !== undefined) yield violation('counter: no lost update', `${told}, as has ${rival.name}`);
      increment.count = count;
      counter.byCount.set(count, increment);
    } else if (increment.count !== count) {
      yield violation('counter: a name counts once', `${told}, and was answered with ${increment.count}`);
    }
  }
  for (const increment of counter.increments.values()) {
    const { name, named, count } = increment;
    if (!named || records.has(name)) continue;
    if (count === undefined) for (const call of increment.calls) call.refused = true;
    else yield violation('counter: nothing is lost', `${name} at ${counter.name} has count ${count}, and no record`);
  }
}

/** CO2. */
function* revisionsOf({ name, byCount }: Counter): Generator<Finding> {
  let before: Increment | undefined;
  for (const [count, increment] of [...byCount].sort(([a], [b]) => a - b)) {
    const { revision } = increment;
    if (revision === undefined) continue;
    if (revision <= (before?.revision ?? 0)) {
      const detail = `count ${count} of ${name} has revision ${revision}, and count ${before?.count} ${before?.revision}`;
      yield violation('counter: revisions grow', detail);
    }
    before = increment;
  }
}

/** CO4. */
function* missingOf({ name, highest, increments, byCount, reached }: Counter): Generator<Finding> {
  const unanswered = [...increments.values()]
    .filter(({ count }) => count === undefined)
    .flatMap(({ calls }) => calls.find(({ refused }) => !refused)?.at ?? [])
    .sort((a, b) => a - b);
  const answers = reached.toSorted((a, b) => a.count - b.count);
  /** When the counts from each answer on were first reached. */
  const firsts = new Array<number>(answers.length);
  for (let i = answers.length - 1, first = Number.POSITIVE_INFINITY; i >= 0; i--) {
    first = Math.min(first, answers[i]?.at ?? first);
    firsts[i] = first;
  }
  let missing = 0;
  let next = 0;
  for (let count = 1; count <= highest; count++) {
    while ((answers[next]?.count ?? count) < count) next++;
    if (byCount.has(count)) continue;
    const began = unanswered[missing++];
    if (began !== undefined && began < (firsts[next] ?? 0)) continue;
    const detail = `${highest} was reached at ${name}, and no unanswered call can be the increment to ${count}`;
    yield violation('counter: nothing is made up', detail);
    return;
  }
}
