import type * as pb from '@remora/protocol/remora';
import type { HeartbeatCodec } from '../heartbeat-stream.ts';
import { toSession } from './lock-requests.ts';

/**
 * `Lock.KeepAlive`. A heartbeat without a confirmation is answered with an error code, and the stream stays open. It
 * ends if its credentials do not count any more: only a new stream has others.
 */
export const SESSION_CODEC: HeartbeatCodec<pb.KeepAliveRequest, pb.KeepAliveResponse> = {
  lease: (request) => {
    const { lease, incarnation } = toSession(request.session);
    return { id: lease, incarnation };
  },
  renewed: ({ session, sequence }, ttlMs) => ({ session, sequence, ttlMs, errorCode: '' }),
  gone: ({ session, sequence }) => ({ session, sequence, ttlMs: -1, errorCode: '' }),
  failed: ({ session, sequence }, error) =>
    error.code === 'UNAUTHENTICATED' ? undefined : { session, sequence, ttlMs: 0, errorCode: error.code },
};
