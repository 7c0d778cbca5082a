/**
 * The queue of snapshots to send, by receiving node.
 *
 * Q1. Nodes take turns, and within a node the order is first come, first served: a node that needs a thousand snapshots
 *     does not delay another that needs one.
 * Q2. One entry per key; the queue is bounded by the number of replicas on other nodes in the node's groups.
 * Q3. A node that was put off is skipped until its time.
 */
import type { NodeId } from '../../ports.ts';

interface NodeQueue<T> {
  readonly waiting: Map<string, T>;
  notBeforeMs: number;
}

export class SendQueue<T> {
  /** In the order of their turns. */
  readonly #nodes = new Map<NodeId, NodeQueue<T>>();

  /** Adds an entry at the end of its node's queue or at its front; an entry with the same key keeps its place. */
  put(node: NodeId, key: string, item: T, place: 'front' | 'back' = 'back'): void {
    const queue = this.#nodes.get(node) ?? { waiting: new Map<string, T>(), notBeforeMs: 0 };
    this.#nodes.set(node, queue);
    if (place === 'back' || queue.waiting.has(key)) {
      queue.waiting.set(key, item);
      return;
    }
    const others = [...queue.waiting];
    queue.waiting.clear();
    queue.waiting.set(key, item);
    for (const [otherKey, other] of others) queue.waiting.set(otherKey, other);
  }

  get(node: NodeId, key: string): T | undefined {
    return this.#nodes.get(node)?.waiting.get(key);
  }

  delete(node: NodeId, key: string): void {
    this.#nodes.get(node)?.waiting.delete(key);
  }

  /** Skips the node until then (Q3). */
  putOff(node: NodeId, untilMs: number): void {
    const queue = this.#nodes.get(node);
    if (queue !== undefined) queue.notBeforeMs = untilMs;
  }

  /** Takes the next entry that is `free`; that ends the turn of its node (Q1). */
  next(nowMs: number, free: (key: string) => boolean): T | undefined {
    for (const [node, queue] of this.#nodes) {
      if (queue.waiting.size === 0 && queue.notBeforeMs <= nowMs) this.#nodes.delete(node);
      if (queue.notBeforeMs > nowMs) continue;
      for (const [key, item] of queue.waiting) {
        if (!free(key)) continue;
        queue.waiting.delete(key);
        this.#nodes.delete(node);
        this.#nodes.set(node, queue);
        return item;
      }
    }
    return undefined;
  }

  get size(): number {
    let size = 0;
    for (const { waiting } of this.#nodes.values()) size += waiting.size;
    return size;
  }

  clear(): void {
    this.#nodes.clear();
  }
}
