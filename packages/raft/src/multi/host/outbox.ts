import type { PersistMark } from '../../core/types.ts';
import type { GroupAppend, GroupMessage, NodeId } from '../ports.ts';

/** Notified when a batch is durable. */
export interface MarkOwner {
  persisted(mark: PersistMark): void;
}

/**
 * Gathers the messages and records of one loop turn over all groups: one frame per node, one log append (design §5).
 */
export class Outbox {
  readonly frames = new Map<NodeId, GroupMessage[]>();
  readonly appends: GroupAppend[] = [];
  readonly marks: { readonly owner: MarkOwner; readonly mark: PersistMark }[] = [];

  send(node: NodeId, message: GroupMessage): void {
    const frame = this.frames.get(node);
    if (frame === undefined) this.frames.set(node, [message]);
    else frame.push(message);
  }

  append(append: GroupAppend): void {
    this.appends.push(append);
  }

  mark(owner: MarkOwner, mark: PersistMark): void {
    this.marks.push({ owner, mark });
  }
}
