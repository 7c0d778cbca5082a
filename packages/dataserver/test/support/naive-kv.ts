import {
  type CommandResult,
  isKeyCompare,
  type KeyCompare,
  type KeyValue,
  type KvOp,
  type Txn,
} from '@remora/protocol';

interface Pair {
  readonly value: string;
  readonly create: number;
  readonly mod: number;
  readonly version: number;
}

type Keys = ReadonlyMap<string, Pair>;

/** etcd's key-value semantics as simply as they can be written: a copy of everything per revision. For tests. */
export class NaiveKv {
  revision = 1;
  compactRevision = 0;
  /** What the next change gets, when that is not one more than the last. */
  next: number | undefined;
  readonly #states: Keys[] = [new Map(), new Map()];

  at(revision: number): Keys {
    return this.#states[revision] ?? new Map();
  }

  /** A change that touches no key. */
  step(): void {
    this.#advance(this.at(this.revision));
  }

  #advance(keys: Keys): void {
    const next = this.next ?? this.revision + 1;
    while (this.#states.length < next) this.#states.push(this.at(this.revision));
    this.#states.push(keys);
    this.revision = next;
  }

  /** The result as text, or the code of the error; then nothing has changed. */
  run(op: KvOp): string {
    const before = this.at(this.revision);
    const working = { before, keys: new Map(before), changed: new Set<string>() };
    let text: string;
    try {
      text = this.#evaluate(op, working);
    } catch (error) {
      return error instanceof Refusal ? error.message : String(error);
    }
    if (working.changed.size > 0) this.#advance(working.keys);
    return text;
  }

  compact(revision: number): string {
    if (revision > this.revision) return 'FUTURE_REVISION';
    if (revision <= this.compactRevision) return 'COMPACTED';
    this.compactRevision = revision;
    return 'compact';
  }

  #evaluate(op: KvOp, working: Working): string {
    const next = this.next ?? this.revision + 1;
    switch (op.type) {
      case 'txn':
        return this.#txn(op.txn, working);
      case 'put': {
        const key = text(op.key);
        const before = working.keys.get(key);
        change(working, key);
        working.keys.set(key, {
          value: text(op.value),
          create: before?.create ?? next,
          mod: next,
          version: (before?.version ?? 0) + 1,
        });
        return `put(${op.prevKv && before !== undefined ? pair(key, before) : ''})`;
      }
      case 'delete': {
        const found = inside(working.keys, op);
        for (const [key] of found) {
          change(working, key);
          working.keys.delete(key);
        }
        return `delete(${found.length};${op.prevKv ? pairs(found) : ''})`;
      }
      case 'range': {
        if (op.revision > this.revision) throw new Refusal('FUTURE_REVISION');
        if (op.revision > 0 && op.revision < this.compactRevision) throw new Refusal('COMPACTED');
        const all = inside(op.revision > 0 ? this.at(op.revision) : working.keys, op);
        const limited = op.limit > 0 ? all.slice(0, op.limit) : all;
        const kvs = op.countOnly ? [] : limited;
        return `range(${all.length};${!op.countOnly && limited.length < all.length};${pairs(kvs)})`;
      }
    }
  }

  #txn(txn: Txn, working: Working): string {
    const holds = txn.compare.every((compare) => isKeyCompare(compare) && compares(compare, working.before));
    const branch = holds ? txn.success : txn.failure;
    return `txn(${holds};${branch.map((op) => this.#evaluate(op, working)).join(',')})`;
  }
}

interface Working {
  readonly before: Keys;
  readonly keys: Map<string, Pair>;
  readonly changed: Set<string>;
}

class Refusal extends Error {}

function change(working: Working, key: string): void {
  if (working.changed.has(key)) throw new Refusal('DUPLICATE_KEY');
  working.changed.add(key);
}

function compares(compare: KeyCompare, keys: Keys): boolean {
  const found = inside(keys, compare).map(([, value]) => value);
  const target = compare.target;
  const one = (value: Pair | undefined): boolean => {
    if (target.of === 'value') return value !== undefined && decide(compare.result, value.value, text(target.value));
    if (target.of === 'lease') return decide(compare.result, 0n, target.value);
    const number =
      value === undefined ? 0 : { version: value.version, create: value.create, mod: value.mod }[target.of];
    return decide(compare.result, number, target.value);
  };
  return found.length === 0 ? one(undefined) : found.every(one);
}

function decide<T extends string | number | bigint>(result: KeyCompare['result'], a: T, b: T): boolean {
  return { equal: a === b, notEqual: a !== b, greater: a > b, less: a < b }[result];
}

function inside(keys: Keys, range: { readonly key: Uint8Array; readonly end?: Uint8Array }): readonly [string, Pair][] {
  const start = text(range.key);
  const end = range.end === undefined ? undefined : text(range.end);
  return [...keys]
    .filter(([key]) => (end === undefined ? key === start : key >= start && (end === '' || key < end)))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

function pair(key: string, { value, create, mod, version }: Pair): string {
  return `${key}=${value}@${create}/${mod}/${version}`;
}

function pairs(found: readonly (readonly [string, Pair])[]): string {
  return found.map(([key, value]) => pair(key, value)).join(' ');
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('latin1');
}

/** A result as `NaiveKv.run` shows it. */
export function resultText(result: CommandResult): string {
  switch (result.type) {
    case 'put':
      return `put(${result.prev === undefined ? '' : kvText(result.prev)})`;
    case 'delete':
      return `delete(${result.deleted};${result.prev.map(kvText).join(' ')})`;
    case 'range':
      return `range(${result.count};${result.more};${result.kvs.map(kvText).join(' ')})`;
    case 'txn':
      return `txn(${result.succeeded};${result.results.map(resultText).join(',')})`;
    default:
      return result.type;
  }
}

function kvText(kv: KeyValue): string {
  const { createRevision: create, modRevision: mod, version } = kv;
  return pair(text(kv.key), { value: text(kv.value), create, mod, version });
}
