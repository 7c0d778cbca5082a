/**
 * The followers of one leader whose heartbeats its node merges with those of other groups: the steady ones
 * (heartbeats.ts M1).
 */
import type { RaftCore } from '../../../core/raft.ts';
import type { ReplicaLocator } from '../../host-api.ts';
import type { HeartbeatSender, Heartbeats, SteadyFollower } from './heartbeats.ts';

export interface MergedFollowersOptions {
  readonly core: RaftCore;
  readonly sender: HeartbeatSender;
  readonly heartbeats: Heartbeats;
  readonly locate: ReplicaLocator;
}

export class MergedFollowers {
  readonly #options: MergedFollowersOptions;
  /** The followers as of this version of the core's list. */
  #followers: readonly SteadyFollower[] = [];
  #version = 0;

  constructor(options: MergedFollowersOptions) {
    this.#options = options;
  }

  /** Registers followers that became steady with the node's heartbeats, and removes the others. */
  sync(): void {
    const { core, sender, heartbeats, locate } = this.#options;
    if (core.steadyVersion === this.#version) return;
    this.#version = core.steadyVersion;
    const before = this.#followers;
    const now = core.steadyFollowers();
    const kept = before.filter((old) => now.some(({ epoch }) => epoch === old.epoch));
    for (const old of before) if (!kept.includes(old)) heartbeats.remove(sender, old);
    const added: SteadyFollower[] = [];
    for (const { replica, epoch } of now) {
      const node = locate(replica);
      if (node === undefined || kept.some((old) => old.epoch === epoch)) continue;
      const follower = { replica, epoch, node };
      if (!heartbeats.add(sender, follower)) continue;
      core.mergeHeartbeats(replica, epoch, true);
      added.push(follower);
    }
    this.#followers = [...kept, ...added];
  }

  close(): void {
    const { sender, heartbeats } = this.#options;
    for (const follower of this.#followers) heartbeats.remove(sender, follower);
    this.#followers = [];
  }
}
