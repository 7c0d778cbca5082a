import { type Clock, type Random, ServiceError, toServiceError } from '@remora/base';
import type * as pb from '@remora/protocol/etcd';
import { ClusterCalls } from '../../admin/cluster-calls.ts';
import type { Backend } from '../../backend.ts';
import type { CallDone, CallerInfo, CallInfo, GiveUp, StreamHandler, StreamSink } from '../../calls.ts';
import { ANY_USER, root } from '../etcd-needs.ts';
import type { EtcdNode } from '../etcd-node.ts';
import type { Headers } from '../headers.ts';
import { answering } from '../replies.ts';
import { ETCD_VERSION } from '../version.ts';
import { alarmsOf, alarmText, answerAlarm } from './alarms.ts';
import { KeyHash } from './key-hash.ts';
import { KeyScans } from './key-scans.ts';
import { badTransferee, moveLeaders } from './move-leader.ts';
import { type Asking, asked, plainKeyPages } from './plain-keys.ts';
import { SnapshotStream } from './snapshot-stream.ts';

export interface MaintenanceDeps {
  readonly backend: Backend;
  readonly headers: Headers;
  readonly clock: Clock;
  readonly random: Random;
  readonly node: EtcdNode;
}

/**
 * `etcdserverpb.Maintenance`.
 *
 * MT1. What `Status` reports is that of the cluster, not of one member: the leader is that of the first range, the log
 *      positions and sizes are sums over all ranges. So all members report the same.
 * MT2. A hash is one over the plain keys at one revision (`KeyHash`), as the ranges' leaders have them. Every node
 *      returns the same hash for a revision; it differs from etcd's, which covers older versions as well.
 */
export class EtcdMaintenance {
  readonly #deps: MaintenanceDeps;
  readonly #calls: ClusterCalls;
  readonly #scans = new KeyScans();

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps;
    const { clock, random, node } = deps;
    this.#calls = new ClusterCalls({ clock, random, master: node.master, dialer: node.dialer });
  }

  status(_request: pb.StatusRequest, call: CallInfo, done: CallDone<pb.StatusResponse>): GiveUp {
    const { backend, headers, node } = this.#deps;
    return backend.query(
      { type: 'status' },
      call,
      answering(headers, done, 'status', ({ status }, { revision, raftTerm }) => {
        const header = headers.latest(call.seen, revision, Math.max(raftTerm, status.term));
        const conditions = node.conditions();
        return {
          header,
          version: ETCD_VERSION,
          dbSize: status.bytes,
          leader: status.leaderNode,
          raftIndex: status.commit,
          raftTerm: header.raftTerm,
          raftAppliedIndex: status.applied,
          errors: [
            ...(status.leaderNode === 0 ? ['etcdserver: no leader'] : []),
            ...alarmsOf(conditions).map(alarmText),
            ...conditions.filter(({ severity }) => severity === 'critical').map(({ text }) => text),
          ],
          dbSizeInUse: status.bytes,
          isLearner: false,
          storageVersion: '',
          dbSizeQuota: 0,
          downgradeInfo: { enabled: false, targetVersion: '' },
        };
      }),
    );
  }

  alarm(request: pb.AlarmRequest, { seen, principal }: CallInfo, done: CallDone<pb.AlarmResponse>): undefined {
    const { backend, headers, node } = this.#deps;
    backend.check(principal, request.action === 0 ? ANY_USER : root('change alarms'));
    done(undefined, { alarms: answerAlarm(request, node.conditions()), header: headers.latest(seen) });
  }

  /** Nodes reclaim space in the background all the time, so there is nothing to do. */
  defragment(
    _request: pb.DefragmentRequest,
    { seen, principal }: CallInfo,
    done: CallDone<pb.DefragmentResponse>,
  ): undefined {
    this.#deps.backend.check(principal, root('defragment'));
    done(undefined, { header: this.#deps.headers.latest(seen) });
  }

  hash(_request: pb.HashRequest, call: CallInfo, done: CallDone<pb.HashResponse>): GiveUp {
    return this.#hashed(0, call, (error, response) => {
      if (response === undefined) return done(error, undefined);
      done(undefined, { header: response.header, hash: response.hash });
    });
  }

  hashKv(request: pb.HashKVRequest, call: CallInfo, done: CallDone<pb.HashKVResponse>): GiveUp {
    const { revision } = request;
    if (revision > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new ServiceError('FUTURE_REVISION', `revision ${revision} is in the future`);
    }
    return this.#hashed(revision < 0n ? 0 : Number(revision), call, done);
  }

  /** MT2. */
  #hashed(revision: number, { seen, timeoutMs, principal }: CallInfo, done: CallDone<pb.HashKVResponse>): GiveUp {
    this.#deps.backend.check(principal, root('hash all keys'));
    const leave = this.#scans.enter();
    const over = new AbortController();
    const late = this.#deps.clock.setTimer(timeoutMs, () => over.abort());
    this.#hashOf(revision, { signal: over.signal, principal })
      .then(
        ({ newest, ...response }) => done(undefined, { ...response, header: this.#deps.headers.latest(seen, newest) }),
        (error: unknown) => done(over.signal.aborted ? tooLate() : toServiceError(error), undefined),
      )
      .finally(() => {
        late.cancel();
        leave();
      });
    return () => over.abort();
  }

  async #hashOf(
    revision: number,
    asking: Asking,
  ): Promise<Omit<pb.HashKVResponse, 'header'> & { readonly newest: number }> {
    const { backend } = this.#deps;
    const hash = new KeyHash();
    let hashRevision = revision;
    for await (const page of plainKeyPages(backend, { revision, ...asking })) {
      for (const kv of page.kvs) hash.add(kv);
      hashRevision = page.revision;
    }
    const { result, revision: newest } = await asked(backend, { type: 'status' }, asking);
    const compactRevision = result.type === 'status' ? result.status.compactRevision : 0;
    return { hash: hash.value, compactRevision, hashRevision, newest };
  }

  snapshot(sink: StreamSink<pb.SnapshotResponse>, { principal }: CallerInfo): StreamHandler<pb.SnapshotRequest> {
    const { backend, headers, clock, node } = this.#deps;
    backend.check(principal, root('take snapshots'));
    return new SnapshotStream({ backend, headers, clock, scans: this.#scans, program: node.program, principal }, sink);
  }

  /** Like etcd's: only the member that `Status` calls the leader takes it. */
  moveLeader(request: pb.MoveLeaderRequest, call: CallInfo, done: CallDone<pb.MoveLeaderResponse>): GiveUp {
    const { backend, headers, clock } = this.#deps;
    backend.check(call.principal, root('move leaders'));
    const asking = { principal: call.principal };
    const over = new AbortController();
    const move = async (): Promise<void> => {
      const { result } = await asked(backend, { type: 'status' }, { signal: over.signal, ...asking });
      const from = result.type === 'status' ? result.status.leaderNode : 0;
      if (from !== backend.nodeId) throw notLeader(from);
      const to = Number(request.targetID);
      const isMember = backend.view().nodes.some(({ descriptor, state }) => {
        return BigInt(descriptor.nodeId) === request.targetID && state !== 'removed';
      });
      if (!isMember) throw badTransferee(request.targetID, 'it is not a member of the cluster');
      if (to === from) return;
      await moveLeaders({ calls: this.#calls, clock }, { from, to, timeoutMs: call.timeoutMs });
    };
    move().then(
      () => done(undefined, { header: headers.latest(call.seen) }),
      (error: unknown) => done(toServiceError(error), undefined),
    );
    return () => over.abort();
  }
}

function notLeader(leader: number): ServiceError {
  const message = leader === 0 ? 'no member leads now; try again' : `member ${leader} is the leader; send it the call`;
  return new ServiceError('INVALID_ARGUMENT', message, { details: { etcd: 'memberNotLeader' } });
}

function tooLate(): ServiceError {
  const message = 'hashing all keys took longer than the time of the call; send it with a longer deadline';
  return new ServiceError('DEADLINE_EXCEEDED', message);
}
