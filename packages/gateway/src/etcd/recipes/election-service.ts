import { asBuffer, type Random, ServiceError } from '@remora/base';
import type { KvOp } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import type { CallDone, CallerInfo, CallInfo, GiveUp, StreamHandler, StreamSink, TakeBack } from '../../calls.ts';
import { fromKeyValue } from '../kv-responses.ts';
import { attended } from './attended.ts';
import type { BackendCalls } from './backend-calls.ts';
import type { KeyLine, Place } from './key-line.ts';
import { LeaderObserver } from './leader-observer.ts';
import { underLease } from './own-lease.ts';

type LeaderKey = pb.v3electionpb.LeaderKey;

/**
 * `v3electionpb.Election`: etcd's election recipe, run by the server (etcd `server/etcdserver/api/v3election`). The
 * first key in the line leads; its value is what the leader proclaims.
 *
 * EL1. A campaign that is answered led at a moment within the call (key-line.ts K2).
 * EL2. Proclaiming and resigning take effect only if the leader's key is still the one with which it was elected.
 * EL3. Two campaigns share a key only if both name the same lease; a campaign without one gets a lease of its own.
 * EL4. A leader loses the election when its lease ends, even if it proclaims without naming it: its key keeps its
 *      lease.
 */
export class EtcdElection {
  readonly #calls: BackendCalls;
  readonly #line: KeyLine;
  readonly #random: Random;

  constructor(calls: BackendCalls, line: KeyLine, random: Random) {
    this.#calls = calls;
    this.#line = line;
    this.#random = random;
  }

  campaign(
    request: pb.v3electionpb.CampaignRequest,
    { principal }: CallInfo,
    done: CallDone<pb.v3electionpb.CampaignResponse>,
  ): TakeBack {
    const { calls, line } = this.#for(principal);
    return attended(done, (signal) =>
      underLease({ calls, random: this.#random }, request.lease, (lease) =>
        campaigned(line, { ...request, lease }, signal),
      ),
    );
  }

  proclaim(
    request: pb.v3electionpb.ProclaimRequest,
    { principal }: CallInfo,
    done: CallDone<pb.v3electionpb.ProclaimResponse>,
  ): GiveUp {
    const leader = given(request.leader);
    return attended(done, async () => {
      const { result, header } = await this.#for(principal).line.change(placeOf(leader), putOp(leader, request.value));
      if (!result.succeeded) throw notLeader();
      return { header };
    });
  }

  leader(
    request: pb.v3electionpb.LeaderRequest,
    { principal }: CallInfo,
    done: CallDone<pb.v3electionpb.LeaderResponse>,
  ): GiveUp {
    return attended(done, async () => {
      const { kv, header } = await this.#for(principal).line.head(request.name);
      if (kv === undefined) throw noLeader();
      return { header, kv: fromKeyValue(kv) };
    });
  }

  observe(
    sink: StreamSink<pb.v3electionpb.LeaderResponse>,
    { principal }: CallerInfo,
  ): StreamHandler<pb.v3electionpb.LeaderRequest> {
    return new LeaderObserver(this.#for(principal), sink);
  }

  /** Has no effect if the caller does not lead, as in etcd. */
  resign(
    request: pb.v3electionpb.ResignRequest,
    { principal }: CallInfo,
    done: CallDone<pb.v3electionpb.ResignResponse>,
  ): GiveUp {
    const leader = given(request.leader);
    return attended(done, async () => {
      const { header } = await this.#for(principal).line.change(placeOf(leader), {
        type: 'delete',
        key: leader.key,
        prevKv: false,
      });
      return { header };
    });
  }

  /** The steps, in the name of the caller. */
  #for(principal: CallerInfo['principal']): { readonly calls: BackendCalls; readonly line: KeyLine } {
    const calls = this.#calls.as(principal);
    return { calls, line: this.#line.over(calls) };
  }
}

async function campaigned(
  line: KeyLine,
  { name, lease, value }: pb.v3electionpb.CampaignRequest,
  signal: AbortSignal,
): Promise<pb.v3electionpb.CampaignResponse> {
  const place = await line.join(name, lease, value);
  const leader = { name, key: asBuffer(place.key), rev: BigInt(place.createRevision), lease };
  try {
    await line.first(place, signal);
    const header = await line.holds(place, signal);
    if (header === undefined) throw notLeader();
    signal.throwIfAborted();
    return { header, leader };
  } catch (error) {
    await line.leave(place);
    throw error;
  }
}

function given(leader: LeaderKey | undefined): LeaderKey {
  if (leader !== undefined) return leader;
  throw new ServiceError('INVALID_ARGUMENT', 'the field leader is missing', {
    details: { etcd: 'missingLeaderKey' },
  });
}

/** No place has a revision at which no key can have been created. */
function placeOf({ key, rev }: LeaderKey): Pick<Place, 'key' | 'createRevision'> {
  const possible = rev > 0n && rev < BigInt(Number.MAX_SAFE_INTEGER);
  return { key, createRevision: possible ? Number(rev) : Number.MAX_SAFE_INTEGER };
}

/** EL4. */
function putOp({ key, lease }: LeaderKey, value: Uint8Array): KvOp {
  return { type: 'put', key, value, lease, prevKv: false, ignoreValue: false, ignoreLease: lease === 0n };
}

function notLeader(): ServiceError {
  return new ServiceError('LOCK_NOT_HELD', 'the caller does not lead the election, or no longer does', {
    details: { etcd: 'notLeader' },
  });
}

function noLeader(): ServiceError {
  return new ServiceError('LOCK_NOT_HELD', 'the election has no leader', { details: { etcd: 'noLeader' } });
}
