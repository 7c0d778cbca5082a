/**
 * The nodes of a group's replicas: from its descriptor or, until that names them, from their messages. A replica never
 * moves.
 */
import { LazyMap } from '@remora/base';
import type { ReplicaId } from '../../../core/types.ts';
import type { ReplicaLocator } from '../../host-api.ts';
import type { NodeId } from '../../ports.ts';

/** Senders whose node no descriptor named yet, remembered per group so that they can be answered. */
const HEARD_MAX = 16;

export class ReplicaPlaces {
  readonly #described: ReplicaLocator;
  readonly #heard = new LazyMap<ReplicaId, NodeId>();
  /** The last answer of `nodeOf`. */
  #last: { readonly replica: ReplicaId; readonly node: NodeId } | undefined;

  constructor(described: ReplicaLocator) {
    this.#described = described;
  }

  /** Whether `replica` is on `node`. An unknown replica is accepted from any node. */
  comesFrom(replica: ReplicaId, node: NodeId): boolean {
    const known = this.#described(replica);
    if (known !== undefined) return known === node;
    if (this.#heard.get(replica) !== node) {
      this.#heard.delete(replica);
      if (this.#heard.size >= HEARD_MAX) this.#heard.delete(this.#heard.keys().next().value ?? 0);
      this.#heard.set(replica, node);
    }
    return true;
  }

  locate(replica: ReplicaId): NodeId | undefined {
    return this.#described(replica) ?? this.#heard.get(replica);
  }

  /** `locate` with a cache for repeated questions about the same replica. */
  nodeOf(replica: ReplicaId): NodeId | undefined {
    if (this.#last?.replica === replica) return this.#last.node;
    const node = this.locate(replica);
    if (node !== undefined) this.#last = { replica, node };
    return node;
  }
}
