import { type Clock, compareBytes, EMPTY_BYTES, ServiceError, type Timer } from '@remora/base';
import type { Backend, BackendDone, RequestOptions, WatchControl, WatchListener, WatchOptions } from '@remora/gateway';
import {
  type ClusterView,
  type Command,
  type CommandResult,
  changedTwice,
  isKeyCompare,
  type KeyCompare,
  type KeyRange,
  type KeyValue,
  type KvEvent,
  type KvOp,
  type KvResult,
  type Query,
  type QueryResult,
  type RangeOp,
  type RangeStatus,
  rangeOp,
  type Txn,
} from '@remora/protocol';

/**
 * The key-value side of a whole cluster in one object, deliberately naive: every past event is in an array, and every
 * read is a scan. It serves tests of gateway services in which only the protocol matters.
 */
export class MemoryBackend implements Backend {
  readonly nodeId = 1;
  readonly #clock: Clock;
  readonly #current = new Map<string, KeyValue>();
  readonly #history: KvEvent[] = [];
  readonly #leases = new Map<bigint, { readonly ttlMs: number; endsMs: number; timer: Timer }>();
  readonly #watches = new Set<MemoryWatch>();
  #revision = 1;
  #compactRevision = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  check(): void {}

  get watching(): number {
    return this.#watches.size;
  }

  rangeTimeMs(): number {
    return this.#clock.monotonicMs();
  }

  view(): ClusterView {
    const descriptor = {
      nodeId: 1,
      name: 'node-1',
      incarnation: 'a',
      roles: ['master', 'data', 'gateway'],
      peerAddress: '127.0.0.1:2380',
      clientAddress: '127.0.0.1:2379',
      httpAddress: '127.0.0.1:2381',
      version: '0.1.0',
    } as const;
    const nodes = [{ descriptor, state: 'up' }] as const;
    return { clusterId: 'test-cluster', nodes, ranges: [], leaders: [], masterLeader: 1 };
  }

  command(command: Command, _options: RequestOptions, done: BackendDone<CommandResult>): () => void {
    const refusal = command.type === 'txn' ? changedTwice(command.txn) : undefined;
    return this.#later(() => {
      if (refusal !== undefined) throw refusal;
      return this.#apply(command);
    }, done);
  }

  query(query: Query, _options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    return this.#later(() => this.#answer(query), done);
  }

  /** It has no locks. */
  watchLocks(): Omit<WatchControl, 'progress'> {
    return { cancel() {}, pause() {}, resume() {} };
  }

  watch(options: WatchOptions, listener: WatchListener): WatchControl {
    const watch = new MemoryWatch(
      this.#clock,
      options,
      listener,
      () => this.#history,
      () => this.#revision,
    );
    this.#clock.setImmediate(() => {
      if (options.startRevision > 0 && options.startRevision <= this.#compactRevision) {
        return listener.onEnd(new ServiceError('COMPACTED', 'compacted'), this.#compactRevision);
      }
      this.#watches.add(watch);
      watch.begin(() => this.#watches.delete(watch));
    });
    return watch;
  }

  #later<Result>(run: () => Result, done: BackendDone<Result>): () => void {
    let wanted = true;
    this.#clock.setImmediate(() => {
      let result: Result;
      try {
        result = run();
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        if (wanted) done(error, undefined);
        return;
      }
      if (wanted) done(undefined, { result, revision: this.#revision, raftTerm: 2 });
    });
    return () => {
      wanted = false;
    };
  }

  #apply(command: Command): CommandResult {
    switch (command.type) {
      case 'kv':
        return this.#transact((events) => this.#op(command.op, events));
      case 'txn':
        return this.#transact((events) => this.#txn(command.txn, events));
      case 'compact':
        return this.#compact(command.revision);
      case 'leaseGrant':
        if (this.#leases.has(command.id)) throw new ServiceError('LEASE_EXISTS', 'exists');
        this.#leases.set(command.id, { ttlMs: command.ttlMs, endsMs: 0, timer: { cancel() {} } });
        this.#renew(command.id);
        return { type: 'leaseGrant', id: command.id, incarnation: 1, ttlMs: command.ttlMs };
      case 'leaseRevoke':
        this.#endLease(command.id);
        return { type: 'leaseRevoke' };
      default:
        throw new ServiceError('UNIMPLEMENTED', command.type);
    }
  }

  #answer(query: Query): QueryResult {
    switch (query.type) {
      case 'range':
        return this.#range(query.op);
      case 'readTxn':
        return this.#txn(query.txn, []);
      case 'scan':
        return this.#scan(query);
      case 'history':
        return this.#versions(query);
      case 'leaseKeepAlive':
        return { type: 'leaseKeepAlive', id: query.id, incarnation: 1, ttlMs: this.#renew(query.id) };
      case 'leaseTimeToLive':
        return { type: 'leaseTimeToLive', lease: this.#leaseInfo(query.id, query.keys) };
      case 'leases':
        return { type: 'leases', ids: [...this.#leases.keys()] };
      case 'status':
        return { type: 'status', status: this.#status() };
      default:
        throw new ServiceError('UNIMPLEMENTED', query.type);
    }
  }

  #transact<Result>(run: (events: KvEvent[]) => Result): Result {
    const before = new Map(this.#current);
    const events: KvEvent[] = [];
    try {
      const result = run(events);
      if (events.length > 0) {
        this.#revision++;
        this.#history.push(...events);
        for (const watch of this.#watches) watch.pump();
      }
      return result;
    } catch (error) {
      this.#current.clear();
      for (const [key, kv] of before) this.#current.set(key, kv);
      throw error;
    }
  }

  #txn(txn: Txn, events: KvEvent[]): Extract<KvResult, { type: 'txn' }> {
    const succeeded = txn.compare.every((compare) => isKeyCompare(compare) && this.#holds(compare)); // It has no locks.
    const ops = succeeded ? txn.success : txn.failure;
    return { type: 'txn', succeeded, results: ops.map((op) => this.#op(op, events)) };
  }

  #op<Op extends KvOp>(op: Op, events: KvEvent[]): Extract<KvResult, { type: Op['type'] }>;
  #op(op: KvOp, events: KvEvent[]): KvResult {
    switch (op.type) {
      case 'range':
        return this.#range(op);
      case 'put':
        return this.#put(op, events);
      case 'delete': {
        const gone = this.#inRange(this.#current.values(), op);
        for (const prev of gone) this.#remove(prev, events);
        return { type: 'delete', deleted: gone.length, prev: op.prevKv ? gone : [] };
      }
      case 'txn':
        return this.#txn(op.txn, events);
    }
  }

  #put(op: Extract<KvOp, { type: 'put' }>, events: KvEvent[]): KvResult {
    const name = nameOf(op.key);
    const prev = this.#current.get(name);
    if ((op.ignoreValue || op.ignoreLease) && prev === undefined) {
      throw new ServiceError('INVALID_ARGUMENT', 'no such key', { details: { etcd: 'keyNotFound' } });
    }
    const lease = op.ignoreLease ? (prev?.lease ?? 0n) : op.lease;
    if (lease !== 0n && !this.#leases.has(lease)) throw new ServiceError('LEASE_NOT_FOUND', 'no such lease');
    const revision = this.#revision + 1;
    const kv: KeyValue = {
      key: op.key,
      value: op.ignoreValue ? (prev?.value ?? EMPTY_BYTES) : op.value,
      createRevision: prev?.createRevision ?? revision,
      modRevision: revision,
      version: (prev?.version ?? 0) + 1,
      lease,
    };
    this.#current.set(name, kv);
    events.push(prev === undefined ? { type: 'put', kv } : { type: 'put', kv, prev });
    return { type: 'put', prev: op.prevKv ? prev : undefined };
  }

  #remove(prev: KeyValue, events: KvEvent[]): void {
    this.#current.delete(nameOf(prev.key));
    events.push({ type: 'delete', kv: { ...prev, value: EMPTY_BYTES, modRevision: this.#revision + 1 }, prev });
  }

  #range(op: RangeOp): Extract<KvResult, { type: 'range' }> {
    if (op.revision > this.#revision) throw new ServiceError('FUTURE_REVISION', 'future');
    if (op.revision > 0 && op.revision < this.#compactRevision) throw new ServiceError('COMPACTED', 'compacted');
    const all = this.#inRange(op.revision > 0 ? this.#asOf(op.revision) : this.#current.values(), op);
    const found = all.filter(
      (kv) =>
        kv.modRevision >= op.minModRevision &&
        kv.createRevision >= op.minCreateRevision &&
        (op.maxModRevision === 0 || kv.modRevision <= op.maxModRevision) &&
        (op.maxCreateRevision === 0 || kv.createRevision <= op.maxCreateRevision),
    );
    if (op.sortOrder !== 'none') {
      const sign = op.sortOrder === 'descend' ? -1 : 1;
      found.sort((a, b) => sign * compareBy(op.sortTarget, a, b));
    }
    const more = op.limit > 0 && found.length > op.limit;
    const kvs = op.countOnly ? [] : more ? found.slice(0, op.limit) : found;
    return {
      type: 'range',
      kvs: op.keysOnly ? kvs.map((kv) => ({ ...kv, value: EMPTY_BYTES })) : kvs,
      more: more && !op.countOnly,
      count: all.length,
    };
  }

  #scan({ key, end, revision, bytes, limit = 0, keysOnly }: Extract<Query, { type: 'scan' }>): QueryResult {
    const { kvs } = this.#range(rangeOp({ key, end }, { revision, keysOnly: keysOnly === true }));
    let room = bytes;
    const fitting = kvs.findIndex((_, i) => {
      const isOver = room <= 0 || (limit > 0 && i === limit);
      room -= kvs[i] === undefined ? 0 : kvs[i].key.length + kvs[i].value.length;
      return isOver;
    });
    if (fitting < 0) return { type: 'scan', kvs, next: undefined };
    return { type: 'scan', kvs: kvs.slice(0, fitting), next: kvs[fitting]?.key };
  }

  #versions({ key, before, limit }: Extract<Query, { type: 'history' }>): QueryResult {
    const compactRevision = this.#compactRevision;
    const all = this.#history.filter(({ kv }) => compareBytes(kv.key, key) === 0);
    const last = all.findLast(({ kv }) => kv.modRevision <= compactRevision);
    const kept = all.filter(
      (event) => event.kv.modRevision > compactRevision || (event === last && event.type === 'put'),
    );
    const versions = kept.filter(({ kv }) => before === 0 || kv.modRevision < before).reverse();
    const more = versions.length > limit;
    const shown = versions.slice(0, limit).map(({ type, kv }) => ({ type, kv }));
    return { type: 'history', versions: shown, more, compactRevision };
  }

  #asOf(revision: number): Iterable<KeyValue> {
    const state = new Map<string, KeyValue>();
    for (const { type, kv } of this.#history) {
      if (kv.modRevision > revision) break;
      if (type === 'put') state.set(nameOf(kv.key), kv);
      else state.delete(nameOf(kv.key));
    }
    return state.values();
  }

  #inRange(kvs: Iterable<KeyValue>, range: KeyRange): KeyValue[] {
    return [...kvs].filter((kv) => contains(range, kv.key)).sort((a, b) => compareBytes(a.key, b.key));
  }

  #holds(compare: KeyCompare): boolean {
    const found = this.#inRange(this.#current.values(), compare);
    if (found.length === 0 && compare.target.of === 'value') return false;
    const absent = { createRevision: 0, modRevision: 0, version: 0, lease: 0n, value: EMPTY_BYTES, key: compare.key };
    return (found.length > 0 ? found : [absent]).every((kv) => fits(compare.result, compareTarget(compare.target, kv)));
  }

  #compact(revision: number): CommandResult {
    if (revision > this.#revision) throw new ServiceError('FUTURE_REVISION', 'future');
    if (revision < this.#compactRevision || (revision > 0 && revision === this.#compactRevision)) {
      throw new ServiceError('COMPACTED', 'compacted');
    }
    this.#compactRevision = revision;
    return { type: 'compact' };
  }

  #renew(id: bigint): number {
    const lease = this.#leases.get(id);
    if (lease === undefined) return -1;
    lease.timer.cancel();
    lease.endsMs = this.#clock.monotonicMs() + lease.ttlMs;
    lease.timer = this.#clock.setTimer(lease.ttlMs, () => this.#endLease(id));
    return lease.ttlMs;
  }

  #endLease(id: bigint): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) throw new ServiceError('LEASE_NOT_FOUND', 'no such lease');
    lease.timer.cancel();
    this.#leases.delete(id);
    this.#transact((events) => {
      for (const kv of [...this.#current.values()]) if (kv.lease === id) this.#remove(kv, events);
    });
  }

  #leaseInfo(id: bigint, keys: boolean) {
    const lease = this.#leases.get(id);
    const held = [...this.#current.values()].filter((kv) => keys && kv.lease === id).map((kv) => kv.key);
    return {
      id,
      incarnation: 1,
      grantedTtlMs: lease?.ttlMs ?? 0,
      remainingMs: lease === undefined ? -1 : lease.endsMs - this.#clock.monotonicMs(),
      keys: held,
      attributes: {},
      endsEmpty: false,
    };
  }

  #status(): RangeStatus {
    return {
      rangeId: 1,
      leaderNode: 1,
      term: 2,
      commit: this.#revision,
      applied: this.#revision,
      revision: this.#revision,
      compactRevision: this.#compactRevision,
      bytes: 4096,
      keys: this.#current.size,
      leases: this.#leases.size,
      watches: this.#watches.size,
      replicas: [],
    };
  }
}

class MemoryWatch implements WatchControl {
  readonly #clock: Clock;
  readonly #options: WatchOptions;
  readonly #listener: WatchListener;
  readonly #history: () => readonly KvEvent[];
  readonly #revision: () => number;
  #leave: () => void = () => {};
  #next = 0;
  #live = false;
  #over = false;
  #paused = false;

  constructor(
    clock: Clock,
    options: WatchOptions,
    listener: WatchListener,
    history: () => readonly KvEvent[],
    revision: () => number,
  ) {
    this.#clock = clock;
    this.#options = options;
    this.#listener = listener;
    this.#history = history;
    this.#revision = revision;
  }

  begin(leave: () => void): void {
    this.#leave = leave;
    if (this.#over) return leave();
    this.#live = true;
    this.#next = this.#options.startRevision || this.#revision() + 1;
    this.#listener.onCreated(this.#revision());
    this.pump();
  }

  pump(): void {
    this.#clock.setImmediate(() => this.#deliver(false));
  }

  progress(): void {
    this.#clock.setImmediate(() => this.#deliver(true));
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.pump();
  }

  cancel(): void {
    this.#over = true;
    this.#leave();
  }

  #deliver(asked: boolean): void {
    if (!this.#live || this.#over || this.#paused) return;
    const { noPut, noDelete, prevKv } = this.#options;
    const events = this.#history()
      .filter(({ kv }) => kv.modRevision >= this.#next && contains(this.#options, kv.key))
      .filter(({ type }) => !(type === 'put' ? noPut : noDelete))
      .map(({ type, kv, prev }) => (prevKv && prev !== undefined ? { type, kv, prev } : { type, kv }));
    this.#next = Math.max(this.#next, this.#revision() + 1);
    if (events.length > 0) this.#listener.onEvents(events, this.#revision());
    if (asked) this.#listener.onProgress(this.#revision());
  }
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1');
}

function contains(range: KeyRange, key: Uint8Array): boolean {
  if (range.end === undefined) return compareBytes(range.key, key) === 0;
  return compareBytes(range.key, key) <= 0 && (range.end.length === 0 || compareBytes(key, range.end) < 0);
}

function compareBy(target: RangeOp['sortTarget'], a: KeyValue, b: KeyValue): number {
  switch (target) {
    case 'key':
      return compareBytes(a.key, b.key);
    case 'value':
      return compareBytes(a.value, b.value);
    case 'version':
      return a.version - b.version;
    case 'create':
      return a.createRevision - b.createRevision;
    case 'mod':
      return a.modRevision - b.modRevision;
  }
}

function compareTarget(target: KeyCompare['target'], kv: KeyValue): number {
  switch (target.of) {
    case 'value':
      return compareBytes(kv.value, target.value);
    case 'lease':
      return kv.lease === target.value ? 0 : kv.lease < target.value ? -1 : 1;
    case 'version':
      return kv.version - target.value;
    case 'create':
      return kv.createRevision - target.value;
    case 'mod':
      return kv.modRevision - target.value;
  }
}

function fits(result: KeyCompare['result'], order: number): boolean {
  switch (result) {
    case 'equal':
      return order === 0;
    case 'notEqual':
      return order !== 0;
    case 'greater':
      return order > 0;
    case 'less':
      return order < 0;
  }
}
