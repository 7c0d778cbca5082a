import {
  type Bytes,
  type Clock,
  EMPTY_BYTES,
  ERROR_TABLE,
  prefixEnd,
  ServiceError,
  sleep,
  toServiceError,
  utf8,
} from '@remora/base';
import { type Compare, type KeyValue, type KvOp, type RangeOp, rangeOp } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { BackendCalls, Step } from './backend-calls.ts';
import { follow } from './follow.ts';

/** A key in a line, with its revisions. */
export interface Place {
  /** The prefix of all keys in the line. */
  readonly prefix: Bytes;
  readonly key: Bytes;
  readonly createRevision: number;
  /** Set by the call that joined last (K5). */
  readonly modRevision: number;
}

/** Pause before a step that failed temporarily is retried. */
const RETRY_MS = 100;
/** Pause between two attempts to delete the key of a caller that left. */
const LEAVE_PAUSE_MAX_MS = 5_000;
const SLASH = utf8('/');

/**
 * Keys under a prefix, in the order in which they were created: the line that etcd's locks and elections are made of
 * (etcd `client/v3/concurrency`: mutex.go, election.go, key.go). Clients that run the recipe themselves stand in the
 * same line.
 *
 * K1. A place is the key of a lease, and is made once: a caller that joins again with the lease has the same place.
 * K2. A place is first if no key under the prefix is older, by a read that started after the key was there. As
 *     revisions grow in real time over all ranges, no older key can appear later.
 * K3. Each place waits only for the youngest place before it: a place that goes wakes one waiter.
 * K4. Who gives up goes: its key is deleted, on the condition that it is still the same, and only once it is known what
 *     became of the command that made it. That is asked for until it is answered, as a key that stays keeps others
 *     waiting until its lease ends, which may be long. Its call counts among those that wait until then, and so there
 *     are only so many.
 * K5. A place that was joined again, as at another gateway after a call that broke, is its last joiner's: joining
 *     modifies the key, and a call that gives up late deletes only what it joined last. (In etcd it deletes what the
 *     other was granted.)
 */
export class KeyLine {
  readonly #calls: BackendCalls;
  readonly #clock: Clock;
  readonly #isStopped: () => boolean;

  /** `isStopped`: whether the gateway takes no more requests, and has given up its present ones. */
  constructor(calls: BackendCalls, clock: Clock, isStopped: () => boolean) {
    this.#calls = calls;
    this.#clock = clock;
    this.#isStopped = isStopped;
  }

  /** The same line, for another caller. */
  over(calls: BackendCalls): KeyLine {
    return new KeyLine(calls, this.#clock, this.#isStopped);
  }

  /**
   * Joins with a value for the key; without one, the key keeps its value, and a new key is empty.
   *
   * @throws ServiceError LEASE_NOT_FOUND
   */
  async join(name: Bytes, lease: bigint, value?: Bytes): Promise<Place> {
    const prefix = prefixOf(name);
    const key = Buffer.concat([prefix, utf8(BigInt.asUintN(64, lease).toString(16))]);
    const all = { prevKv: false, ignoreValue: false, ignoreLease: false };
    const put: KvOp = { type: 'put', key, value: value ?? EMPTY_BYTES, lease, ...all };
    // One change with the new value, so that observers see that a leader continues its campaign.
    const again: KvOp = { ...put, lease: 0n, prevKv: true, ignoreValue: value === undefined, ignoreLease: true };
    const txn = { compare: [revisionIs('create', key, 0)], success: [put], failure: [again] };
    const { result, header } = await this.#calls.command({ type: 'txn', txn }, 'txn');
    const joined = { prefix, key, modRevision: header.revision };
    if (result.succeeded) return { ...joined, createRevision: header.revision };
    const [had] = result.results;
    const kv = had?.type === 'put' ? had.prev : undefined;
    if (kv === undefined) throw new ServiceError('INTERNAL', 'the range did not return a key that exists');
    return { ...joined, createRevision: kv.createRevision };
  }

  /** Resolves when the place is first (K2). @throws the signal's reason when it aborts. */
  async first(place: Place, signal: AbortSignal): Promise<void> {
    for (;;) {
      const older = { maxCreateRevision: place.createRevision - 1 } as const;
      const before = rangeOp(under(place.prefix), { ...older, sortTarget: 'create', sortOrder: 'descend', limit: 1 });
      const { result, header } = await this.patiently(signal, () => this.#read(before));
      const [ahead] = result.kvs;
      if (ahead === undefined) return;
      await this.#gone(ahead.key, header.revision, signal);
    }
  }

  /** All keys of a line. */
  span(name: Bytes): { readonly key: Bytes; readonly end: Bytes } {
    return under(prefixOf(name));
  }

  /** Resolves with the first pair; undefined if the line is empty. */
  async head(name: Bytes): Promise<{ readonly kv: KeyValue | undefined; readonly header: pb.ResponseHeader }> {
    const op = rangeOp(this.span(name), { sortTarget: 'create', sortOrder: 'ascend', limit: 1 });
    const { result, header } = await this.#read(op);
    return { kv: result.kvs[0], header };
  }

  /** Resolves with whether the place is still there, and the header of that state. */
  async holds(place: Place, signal: AbortSignal): Promise<pb.ResponseHeader | undefined> {
    const { result, header } = await this.patiently(signal, () => this.#read(rangeOp({ key: place.key })));
    return result.kvs[0]?.createRevision === place.createRevision ? header : undefined;
  }

  /** K4, K5. Never rejects: a key that cannot be deleted before the gateway stops is deleted when its lease ends. */
  async leave({ key, modRevision }: Pick<Place, 'key' | 'modRevision'>): Promise<void> {
    const op: KvOp = { type: 'delete', key, prevKv: false };
    const txn = { compare: [revisionIs('mod', key, modRevision)], success: [op], failure: [] };
    for (let pauseMs = RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, LEAVE_PAUSE_MAX_MS)) {
      try {
        await this.#calls.command({ type: 'txn', txn }, 'txn', { givesUp: true });
        return;
      } catch (error) {
        if (!isPassing(toServiceError(error))) return;
      }
      await sleep(this.#clock, pauseMs);
      if (this.#isStopped()) return;
    }
  }

  /** Executes `op` if the place is still there; the result says whether it was. */
  change(place: Pick<Place, 'key' | 'createRevision'>, op: KvOp): Promise<Step<'txn'>> {
    const txn = { compare: [revisionIs('create', place.key, place.createRevision)], success: [op], failure: [] };
    return this.#calls.command({ type: 'txn', txn }, 'txn');
  }

  #read(op: RangeOp): Promise<Step<'range'>> {
    return this.#calls.query({ type: 'range', op, serializable: false }, 'range');
  }

  /** Retries a read that fails temporarily: a change of leader must not end the wait in a line. */
  async patiently<Result>(signal: AbortSignal, step: () => Promise<Result>): Promise<Result> {
    for (;;) {
      signal.throwIfAborted();
      try {
        return await step();
      } catch (error) {
        if (!isPassing(toServiceError(error))) throw error;
        await this.pause(signal);
      }
    }
  }

  /** The pause before a retry. */
  async pause(signal: AbortSignal): Promise<void> {
    await sleep(this.#clock, RETRY_MS, signal);
  }

  /** Resolves when the key was deleted after that revision, or when that is not known any more. */
  async #gone(key: Bytes, revision: number, signal: AbortSignal): Promise<void> {
    const deleted = { key, from: revision + 1, noPut: true };
    const broken = await follow(this.#calls, deleted, { signal, enough: () => true });
    if (broken !== undefined) await this.pause(signal);
  }
}

function prefixOf(name: Bytes): Buffer {
  return Buffer.concat([name, SLASH]);
}

function under(prefix: Bytes): { readonly key: Bytes; readonly end: Bytes } {
  return { key: prefix, end: prefixEnd(prefix) };
}

function revisionIs(of: 'create' | 'mod', key: Bytes, revision: number): Compare {
  return { key, result: 'equal', target: { of, value: revision } };
}

/** Whether a retry may succeed. */
function isPassing({ code }: ServiceError): boolean {
  return ERROR_TABLE[code].retry !== 'no' || code === 'DEADLINE_EXCEEDED';
}
