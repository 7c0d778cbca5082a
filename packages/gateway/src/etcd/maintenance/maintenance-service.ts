import { ServiceError } from '@remora/base';
import type * as pb from '@remora/protocol/etcd';
import type { Backend } from '../backend.ts';
import type { CallDone, CallInfo, GiveUp } from '../calls.ts';
import type { Headers } from './headers.ts';
import { answering } from './replies.ts';

/** The version of etcd's API that is served; clients choose features by it. */
const ETCD_VERSION = '3.5.0';

/** The part of `etcdserverpb.Maintenance` that Remora supports. */
export class EtcdMaintenance {
  readonly #backend: Backend;
  readonly #headers: Headers;

  constructor(backend: Backend, headers: Headers) {
    this.#backend = backend;
    this.#headers = headers;
  }

  status(_request: pb.StatusRequest, call: CallInfo, done: CallDone<pb.StatusResponse>): GiveUp {
    return this.#backend.query(
      { type: 'status' },
      call,
      answering(this.#headers, done, 'status', ({ status }, { revision, raftTerm }) => ({
        header: this.#headers.latest(call.seen, revision, raftTerm),
        version: ETCD_VERSION,
        dbSize: status.bytes,
        leader: status.leaderNode,
        raftIndex: status.commit,
        raftTerm: status.term,
        raftAppliedIndex: status.applied,
        errors: [],
        dbSizeInUse: status.bytes,
        isLearner: false,
      })),
    );
  }

  /** There are no alarms; disarming one succeeds. */
  alarm(request: pb.AlarmRequest, { seen }: CallInfo, done: CallDone<pb.AlarmResponse>): undefined {
    if (request.action === 1) throw new ServiceError('UNIMPLEMENTED', 'remora: alarms cannot be raised by clients');
    done(undefined, { header: this.#headers.latest(seen), alarms: [] });
  }

  /** Space is reclaimed in the background all the time. */
  defragment(_request: pb.DefragmentRequest, { seen }: CallInfo, done: CallDone<pb.DefragmentResponse>): undefined {
    done(undefined, { header: this.#headers.latest(seen) });
  }
}
