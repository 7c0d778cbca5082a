import type * as pb from '@remora/protocol/etcd';
import type { SeenRevision } from '../calls.ts';
import type { HeartbeatCodec } from '../heartbeat-stream.ts';
import type { Headers } from './headers.ts';
import { toTtlSeconds } from './lease-service.ts';

/**
 * `Lease.LeaseKeepAlive`. The answer for a lease that is gone has TTL 0. Any other failure ends the stream, as in etcd,
 * and the client opens another one: an answer would mean that the lease was renewed or is gone, and neither is known.
 */
export function keepAliveCodec(
  headers: Headers,
  seen: SeenRevision,
): HeartbeatCodec<pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse> {
  return {
    lease: (request) => ({ id: request.ID, incarnation: 0 }),
    renewed: (request, ttlMs, { revision, raftTerm }) => ({
      header: headers.latest(seen, revision, raftTerm),
      ID: request.ID,
      TTL: toTtlSeconds(ttlMs),
    }),
    gone: (request) => ({ header: headers.latest(seen), ID: request.ID, TTL: 0 }),
    failed: () => undefined,
  };
}
