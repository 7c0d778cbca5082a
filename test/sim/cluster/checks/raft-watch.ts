/** Passes the events of a node's host and state machines to the Raft checks, over all lives of the node. */
import type {
  ConfState,
  Entry,
  GroupAppend,
  GroupId,
  GroupMessage,
  GroupOptions,
  NodeRaftHost,
  RecoveredGroup,
  ReplicaId,
  SnapshotMeta,
} from '@remora/raft';
import { type KeptCheck, termsOf } from '../../common/raft/kept-check.ts';
import type { ObservedNode } from '../../common/raft/observed-node.ts';
import type { Observer } from '../../common/raft/observer.ts';
import { ReplicaView } from '../../common/raft/replica-view.ts';
import type { HostWatch } from '../../common/raft/watched-host.ts';

export class RaftWatch implements HostWatch {
  /** The node's replica of each group. */
  readonly replicas = new Map<GroupId, ReplicaId>();
  readonly #node: ObservedNode;
  readonly #observer: Observer;
  readonly #kept: KeptCheck;
  #host: NodeRaftHost | undefined;
  /** The host's turns when its groups were last examined. */
  #turns = 0;

  constructor(node: ObservedNode, observer: Observer, kept: KeptCheck) {
    this.#node = node;
    this.#observer = observer;
    this.#kept = kept;
  }

  /** The host of the present life. */
  get host(): NodeRaftHost | undefined {
    return this.#host;
  }

  began(host: NodeRaftHost, recovered: ReadonlyMap<GroupId, RecoveredGroup>): void {
    this.#host = host;
    this.#turns = 0;
    this.#kept.recovered(recovered);
  }

  /** The life is over. */
  ended(): void {
    this.#host = undefined;
    this.#kept.ended();
  }

  /** Something happened to the process: examines its groups if Raft did something. */
  looked(): void {
    const turns = this.#host?.stats().turns ?? 0;
    if (turns === this.#turns) return;
    this.#turns = turns;
    this.#observer.looked(this.#node);
  }

  opened({ groupId, replicaId, conf, applied, recovered }: GroupOptions): void {
    const observer = this.#observer;
    this.replicas.set(groupId, replicaId);
    if (!observer.has(groupId)) observer.addGroup(groupId, conf, applied);
    if (observer.anyView(groupId, replicaId) === undefined) {
      observer.addView(new ReplicaView({ groupId, replicaId, nodeId: this.#node.id }, conf));
    }
    observer.anyView(groupId, replicaId)?.begin({
      start: recovered?.start ?? applied,
      terms: recovered === undefined ? [] : termsOf(recovered),
      confs: recovered?.outline.confs.slice() ?? [],
      applied: applied.index,
      conf,
    });
  }

  removed(groupId: GroupId): void {
    this.replicas.delete(groupId);
  }

  sent(messages: readonly GroupMessage[]): void {
    this.#observer.sent(this.#node, messages);
  }

  appended(batch: readonly GroupAppend[]): void {
    this.#observer.appended(this.#node, batch);
  }

  applying(groupId: GroupId, entry: Entry, conf: ConfState): void {
    this.#observer.applied(this.#node, groupId, entry, { checksum: 0, conf });
  }

  installed(groupId: GroupId, meta: SnapshotMeta): void {
    this.#observer.installed(this.#node, groupId, meta, 0);
  }
}
