import { asBuffer, type Random, ServiceError } from '@remora/base';
import type * as pb from '@remora/protocol/etcd';
import type { CallDone, CallInfo, GiveUp, TakeBack } from '../../calls.ts';
import { attended } from './attended.ts';
import type { BackendCalls } from './backend-calls.ts';
import type { KeyLine, Place } from './key-line.ts';
import { underLease } from './own-lease.ts';

/**
 * `v3lockpb.Lock`: etcd's lock recipe, run by the server (etcd `server/etcdserver/api/v3lock`). The lock is held while
 * the answered key exists; a call waits as long as its caller does.
 *
 * L1. A caller that is answered was first in the line, by a read that still found its own key.
 * L2. A caller that gives up or is refused leaves no key in the line (key-line.ts K4). If it is unknown whether it
 *      joined, the key may stay until its lease ends; a further call with that lease has the place.
 */
export class EtcdLock {
  readonly #calls: BackendCalls;
  readonly #line: KeyLine;
  readonly #random: Random;

  constructor(calls: BackendCalls, line: KeyLine, random: Random) {
    this.#calls = calls;
    this.#line = line;
    this.#random = random;
  }

  lock(
    { name, lease }: pb.v3lockpb.LockRequest,
    { principal }: CallInfo,
    done: CallDone<pb.v3lockpb.LockResponse>,
  ): TakeBack {
    const calls = this.#calls.as(principal);
    const line = this.#line.over(calls);
    const deps = { calls, random: this.#random };
    return attended(done, (signal) => underLease(deps, lease, (own) => locked(line, { name, lease: own }, signal)));
  }

  unlock(
    request: pb.v3lockpb.UnlockRequest,
    { principal }: CallInfo,
    done: CallDone<pb.v3lockpb.UnlockResponse>,
  ): GiveUp {
    return attended(done, async () => {
      if (request.key.length === 0) throw new ServiceError('EMPTY_KEY', 'the key of a lock cannot be empty');
      const op = { type: 'delete', key: request.key, prevKv: false } as const;
      const { header } = await this.#calls.as(principal).command({ type: 'kv', op }, 'delete');
      return { header };
    });
  }
}

async function locked(
  line: KeyLine,
  { name, lease }: { readonly name: Buffer; readonly lease: bigint },
  signal: AbortSignal,
): Promise<pb.v3lockpb.LockResponse> {
  const place = await line.join(name, lease);
  try {
    await line.first(place, signal);
    const header = await line.holds(place, signal);
    if (header === undefined) throw expired(place);
    signal.throwIfAborted();
    return { header, key: asBuffer(place.key) };
  } catch (error) {
    await line.leave(place);
    throw error;
  }
}

function expired({ key }: Place): ServiceError {
  return new ServiceError(
    'SESSION_EXPIRED',
    `the lease ended during the wait, and its key was deleted: ${asBuffer(key)}`,
    {
      details: { etcd: 'mutexSessionExpired' },
    },
  );
}
