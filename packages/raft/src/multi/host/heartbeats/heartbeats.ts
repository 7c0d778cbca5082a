/**
 * Merged heartbeats (design §5 ▸): per interval one frame to each peer, for all groups that this node leads and whose
 * follower there is steady. The peer's reply lists only the groups that it refuses.
 *
 * M1. A frame to a node contains a group only while the follower there is steady: that replica has acknowledged an
 *     append in the leader's current term. The core decides this and numbers each period of steadiness (`epoch`).
 * M2. A reply to sequence N counts for a group only if the group was in frame N and has been steady ever since. Each
 *     member remembers its first sequence and its epoch, and the core compares that epoch with the current one. A new
 *     term or a replaced replica begins a new epoch.
 * M3. A reply counts only if it names this process (boot id) and a sequence that was sent, and comes from the process
 *     that answered before. The first reply from another process only ends the steadiness of all groups there, because
 *     that process does not answer for what was sent before.
 * M4. A follower accepts frames only from the node of its current term's leader (`HeartbeatReceiver.heartbeatFrom`),
 *     and no frame older than the newest one that it has seen from that process.
 * M5. Without a reply there is no effect: the next frame makes up for a lost frame or reply. After an exception the
 *     leader sends a full heartbeat at once, and further ones until the follower is steady again.
 * M6. While nothing changes, a heartbeat allocates nothing per group: the list of ids is one array object that is kept,
 *     encoded once, decoded once, and resolved to replicas once.
 */
import type { Moment, ReplicaId } from '../../../core/types.ts';
import type { GroupId, Heartbeat, HeartbeatFrame, HeartbeatRefusal, HeartbeatReply, NodeId } from '../../ports.ts';

/** Sent frames, per peer, whose replies may still come. Replies to older ones are ignored. */
const SENT_MAX = 64;

/** A leader, as far as heartbeats are concerned. */
export interface HeartbeatSender {
  readonly groupId: GroupId;
  heartbeatAnswered(member: SteadyFollower, sent: Moment): void;
  heartbeatRefused(member: SteadyFollower): void;
}

/** A replica that receives a peer's heartbeat. */
export interface HeartbeatReceiver {
  readonly term: number;
  /** Whether the leader of its current term is at `node`; if so, it keeps waiting (M4). */
  heartbeatFrom(node: NodeId): boolean;
}

/** A follower in merged heartbeats, for one period of steadiness. */
export interface SteadyFollower {
  readonly replica: ReplicaId;
  readonly epoch: number;
  readonly node: NodeId;
}

export interface HeartbeatsOptions {
  readonly bootId: number;
  readonly send: (node: NodeId, frame: HeartbeatFrame) => void;
  /** There was nothing to send, and now there is: `beat` has to be called at the interval. */
  readonly begun: () => void;
  readonly receiver: (groupId: GroupId) => HeartbeatReceiver | undefined;
  /** A node has answered a heartbeat that was sent then. */
  readonly answered?: (node: NodeId, sent: Moment) => void;
}

/** The heartbeats of a node, to and from all its peers. */
export class Heartbeats {
  readonly #options: HeartbeatsOptions;
  readonly #outgoing = new Map<NodeId, Outgoing>();
  readonly #incoming = new Map<NodeId, Incoming>();
  /** Grows when a group comes or goes: lists resolved before are invalid. */
  #groupsVersion = 0;

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
  }

  groupsChanged(): void {
    this.#groupsVersion++;
  }

  /**
   * From the next beat on the group is in the frame to the follower's node (M1). Returns false if another replica is
   * there.
   */
  add(sender: HeartbeatSender, follower: SteadyFollower): boolean {
    let outgoing = this.#outgoing.get(follower.node);
    if (outgoing === undefined) {
      outgoing = new Outgoing(this.#options.bootId);
      this.#outgoing.set(follower.node, outgoing);
    }
    const wasSending = this.isSending;
    const added = outgoing.add(sender, follower);
    if (added && !wasSending) this.#options.begun();
    return added;
  }

  /** Whether a beat sends anything. */
  get isSending(): boolean {
    for (const outgoing of this.#outgoing.values()) if (outgoing.size > 0) return true;
    return false;
  }

  remove(sender: HeartbeatSender, follower: SteadyFollower): void {
    this.#outgoing.get(follower.node)?.remove(sender.groupId, follower);
  }

  /** Sends what is due, at `now` or a little later. */
  beat(now: Moment): void {
    for (const [node, outgoing] of this.#outgoing) {
      const frame = outgoing.next(now);
      if (frame !== undefined) this.#options.send(node, frame);
    }
  }

  receive(from: NodeId, frame: HeartbeatFrame): void {
    if (frame.type === 'reply') {
      const sent = this.#outgoing.get(from)?.replied(frame);
      if (sent !== undefined) this.#options.answered?.(from, sent);
      return;
    }
    let incoming = this.#incoming.get(from);
    if (incoming === undefined) {
      incoming = new Incoming(from);
      this.#incoming.set(from, incoming);
    }
    const refused = incoming.receive(frame, this.#groupsVersion, this.#options.receiver);
    if (refused === undefined) return;
    const { bootId, sequence } = frame;
    this.#options.send(from, { type: 'reply', bootId, sequence, replierBootId: this.#options.bootId, refused });
  }
}

interface Member {
  readonly sender: HeartbeatSender;
  readonly follower: SteadyFollower;
  /** The first sequence that names it (M2). */
  readonly since: number;
}

/** Heartbeats to one peer. */
class Outgoing {
  readonly #bootId: number;
  readonly #members = new Map<GroupId, Member>();
  /** The ids of the members in order; undefined after a change (M6). */
  #groups: readonly GroupId[] | undefined;
  #sequence = 0;
  /** Send times by sequence, as a ring. */
  readonly #sent: Moment[] = [];
  #peerBootId: number | undefined;

  constructor(bootId: number) {
    this.#bootId = bootId;
  }

  get size(): number {
    return this.#members.size;
  }

  add(sender: HeartbeatSender, follower: SteadyFollower): boolean {
    const { groupId } = sender;
    if (this.#members.has(groupId)) return false;
    this.#members.set(groupId, { sender, follower, since: this.#sequence + 1 });
    this.#groups = undefined;
    return true;
  }

  remove(groupId: GroupId, follower: SteadyFollower): void {
    if (this.#members.get(groupId)?.follower !== follower) return;
    this.#members.delete(groupId);
    this.#groups = undefined;
  }

  next(now: Moment): Heartbeat | undefined {
    if (this.#members.size === 0) return undefined;
    this.#groups ??= [...this.#members.keys()].sort((a, b) => a - b);
    this.#sequence++;
    this.#sent[this.#sequence % SENT_MAX] = now;
    return { type: 'heartbeat', bootId: this.#bootId, sequence: this.#sequence, groups: this.#groups };
  }

  /** Returns when the heartbeat was sent; undefined if the reply does not count. */
  replied({ bootId, sequence, replierBootId, refused }: HeartbeatReply): Moment | undefined {
    const sent = this.#sentAt(sequence);
    if (bootId !== this.#bootId || sent === undefined) return undefined; // M3
    if (replierBootId !== this.#peerBootId) {
      const first = this.#peerBootId === undefined;
      this.#peerBootId = replierBootId;
      if (!first) return this.#refuseAll(); // M3
    }
    const no = refused.length === 0 ? undefined : new Set(refused.map(({ groupId }) => groupId));
    for (const { sender, follower, since } of this.#members.values()) {
      if (since > sequence) continue; // M2
      if (no?.has(sender.groupId) === true) sender.heartbeatRefused(follower);
      else sender.heartbeatAnswered(follower, sent);
    }
    return sent;
  }

  #refuseAll(): undefined {
    for (const { sender, follower } of this.#members.values()) sender.heartbeatRefused(follower);
    return undefined;
  }

  #sentAt(sequence: number): Moment | undefined {
    if (sequence > this.#sequence || sequence <= this.#sequence - SENT_MAX) return undefined;
    return this.#sent[sequence % SENT_MAX];
  }
}

const NOBODY: readonly HeartbeatRefusal[] = [];

/** Heartbeats from one peer. */
class Incoming {
  readonly #from: NodeId;
  #bootId: number | undefined;
  #sequence = 0;
  #groups: readonly GroupId[] | undefined;
  #groupsVersion = 0;
  #receivers: readonly (HeartbeatReceiver | undefined)[] = [];

  constructor(from: NodeId) {
    this.#from = from;
  }

  /** Passes the heartbeat to all replicas that it names; returns the exceptions, or undefined if it gets no reply. */
  receive(
    frame: Heartbeat,
    groupsVersion: number,
    receiver: HeartbeatsOptions['receiver'],
  ): readonly HeartbeatRefusal[] | undefined {
    const { bootId, sequence, groups } = frame;
    if (bootId === this.#bootId && sequence <= this.#sequence) return undefined; // M4
    this.#bootId = bootId;
    this.#sequence = sequence;
    if (groups !== this.#groups || groupsVersion !== this.#groupsVersion) {
      this.#groups = groups;
      this.#groupsVersion = groupsVersion;
      this.#receivers = groups.map(receiver); // M6
    }
    let refused: HeartbeatRefusal[] | undefined;
    for (let i = 0; i < groups.length; i++) {
      const replica = this.#receivers[i];
      if (replica?.heartbeatFrom(this.#from) === true) continue;
      refused ??= [];
      refused.push({
        groupId: groups[i] ?? 0,
        reason: replica === undefined ? 'noReplica' : 'notFollowing',
        term: replica?.term ?? 0,
      });
    }
    return refused ?? NOBODY;
  }
}
