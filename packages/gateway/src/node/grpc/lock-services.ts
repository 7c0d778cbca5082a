import type { Random } from '@remora/base';
import * as pb from '@remora/protocol/remora';
import type { Backend } from '../../backend.ts';
import { TIMEOUT_LIMITS } from '../../calls.ts';
import { remoraStatus } from '../../etcd/errors.ts';
import { HeartbeatStream } from '../../heartbeat-stream.ts';
import { sharedBacklog } from '../../lock/lock-event-backpressure.ts';
import { LockApi } from '../../lock/lock-service.ts';
import { LockWatchStream } from '../../lock/lock-watch-stream.ts';
import { SESSION_CODEC } from '../../lock/session-codec.ts';
import { SessionApi } from '../../lock/session-service.ts';
import type { CallGuard } from './call-guard.ts';
import { type GrpcService, grpcService } from './service.ts';

export interface LockServiceDeps {
  readonly backend: Backend;
  readonly random: Random;
}

/** Heartbeats of one stream that wait for an answer. */
const HEARTBEATS_PENDING_MAX = 4_096;

/** `remora.v1.Lock`, to be added to a gRPC server. */
export function lockService(deps: LockServiceDeps, guard: CallGuard): GrpcService {
  const api = new LockApi(deps.backend, deps.random);
  const sessions = new SessionApi(deps.backend);
  const backlog = sharedBacklog();
  const limits = { pendingMax: HEARTBEATS_PENDING_MAX, timeouts: TIMEOUT_LIMITS };
  return grpcService(pb.LockService, {
    openSession: guard.unary(api.openSession.bind(api), remoraStatus),
    keepAlive: guard.stream(
      (sink, resumeReading, caller) =>
        new HeartbeatStream(deps.backend, SESSION_CODEC, limits, { sink, resumeReading, caller }),
      remoraStatus,
    ),
    closeSession: guard.unary(api.closeSession.bind(api), remoraStatus),
    changeSession: guard.unary(sessions.change.bind(sessions), remoraStatus),
    listSessions: guard.unary(sessions.list.bind(sessions), remoraStatus),
    showSession: guard.unary(sessions.show.bind(sessions), remoraStatus),
    acquire: guard.unary(api.acquire.bind(api), remoraStatus),
    cancel: guard.unary(api.cancel.bind(api), remoraStatus),
    release: guard.unary(api.release.bind(api), remoraStatus),
    forceRelease: guard.unary(api.forceRelease.bind(api), remoraStatus),
    downgrade: guard.unary(api.downgrade.bind(api), remoraStatus),
    setCapacity: guard.unary(api.setCapacity.bind(api), remoraStatus),
    setData: guard.unary(api.setData.bind(api), remoraStatus),
    revoke: guard.unary(api.revoke.bind(api), remoraStatus),
    forget: guard.unary(api.forget.bind(api), remoraStatus),
    show: guard.unary(api.show.bind(api), remoraStatus),
    list: guard.unary(api.list.bind(api), remoraStatus),
    check: guard.unary(api.check.bind(api), remoraStatus),
    watch: guard.serverStream(
      (sink, _resume, caller) => new LockWatchStream(deps.backend, backlog, sink, caller),
      remoraStatus,
    ),
  });
}
