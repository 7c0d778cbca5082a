import type { ServiceError } from '@remora/base';
import type { KvEvent } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
import { etcdStatus } from './errors.ts';
import { eventBytes, fromEvent } from './kv-responses.ts';

/**
 * Returns the messages for `events`: one, or as many as keep each near `fragmentBytes`. All except the last are marked
 * as fragments, so that a client treats them as one message.
 */
export function toMessages(
  base: pb.WatchResponse,
  events: readonly KvEvent[],
  fragmentBytes: number,
): readonly pb.WatchResponse[] {
  const messages: pb.WatchResponse[] = [];
  let current: pb.Event[] = [];
  let bytes = 0;
  for (const event of events) {
    const size = eventBytes(event);
    if (current.length > 0 && bytes + size > fragmentBytes) {
      messages.push({ ...base, fragment: true, events: current });
      current = [];
      bytes = 0;
    }
    current.push(fromEvent(event));
    bytes += size;
  }
  messages.push({ ...base, events: current });
  return messages;
}

/**
 * What etcd says to a caller who may not watch: the error of gRPC as Go prints it. Undefined for any other error.
 */
export function accessRefusal(error: ServiceError): string | undefined {
  if (error.code !== 'UNAUTHENTICATED' && error.code !== 'PERMISSION_DENIED') return undefined;
  const { status, message } = etcdStatus(error);
  return `rpc error: code = ${ACCESS_CODES[status] ?? 'Unknown'} desc = ${message}`;
}

/** The names of gRPC's statuses in Go. */
const ACCESS_CODES: Readonly<Record<number, string>> = {
  3: 'InvalidArgument',
  7: 'PermissionDenied',
  16: 'Unauthenticated',
};
