import type { KvEvent } from '@remora/protocol';
import type * as pb from '@remora/protocol/etcd';
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
