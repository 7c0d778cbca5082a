/**
 * A store on a disk and an engine that can be stopped dead, under a host whose groups do what a test says. For tests.
 */
import { nodeClock, silentLogger } from '@remora/base';
import type { RpcDialer } from '@remora/protocol';
import type { Group, GroupId, GroupOptions, LogPosition, RaftHost, RecoveredGroup } from '@remora/raft';
import { Checkpointer } from '../../src/checkpointer.ts';
import type { LockLimitOptions } from '../../src/range/locks/lock-limits.ts';
import type { RangeReplica } from '../../src/range/range-replica.ts';
import type { OtherRanges } from '../../src/range/reshape/other-ranges.ts';
import { Store } from '../../src/store.ts';
import type { CrashWorld } from './crash-world.ts';
import { NO_OTHER_RANGES } from './no-other-ranges.ts';
import { NOBODY_NUMBERS } from './own-revisions.ts';

/** A host whose groups follow a leader that says nothing. Its log holds what a test puts there. */
class QuietHost implements RaftHost {
  readonly created: GroupOptions[] = [];
  readonly checkpointed: LogPosition[] = [];
  /** Groups of which the log has entries: they outlive a crash. */
  readonly logged: Set<GroupId>;
  readonly #running = new Set<GroupId>();

  constructor(logged: Set<GroupId> = new Set()) {
    this.logged = logged;
  }

  /** A test sets it when the host stops itself. */
  stopped = false;

  createGroup(options: GroupOptions): Group {
    if (this.stopped) throw new Error('the raft host is stopped');
    this.created.push(options);
    this.#running.add(options.groupId);
    this.logged.add(options.groupId);
    const refused = { refused: 'notLeader' } as const;
    return {
      groupId: options.groupId,
      replicaId: options.replicaId,
      role: 'follower',
      term: 2,
      leader: 0,
      ready: false,
      propose: () => refused,
      proposeConf: () => refused,
      readIndex: (done) => done('notLeader'),
      leaseRead: (done) => done('notLeader'),
      transferring: false,
      hasLease: () => false,
      checkpointed: (position) => void this.checkpointed.push(position),
      tellCommits() {},
      transferLeader: () => refused,
      forceAlone: () => ({ refused: 'noData' }),
      status() {
        throw new Error('nobody asks');
      },
    };
  }

  start(): void {}
  group(): undefined {}

  runs(groupId: GroupId): boolean {
    return this.#running.has(groupId);
  }

  async removeGroup(groupId: GroupId, recorded?: () => Promise<void>): Promise<void> {
    this.#running.delete(groupId);
    await recorded?.();
    this.logged.delete(groupId);
  }

  async logDurable(): Promise<void> {}
  async stop(): Promise<void> {
    this.stopped = true;
  }
}

/** To a cluster in which no other node is up. */
const NOBODY_ANSWERS: RpcDialer = {
  channel() {
    throw new Error('nobody is called here');
  },
  channelTo() {
    throw new Error('nobody is called here');
  },
};

/** What an empty log holds of a group. */
const NOTHING_LOGGED: RecoveredGroup = {
  hardState: { term: 0, vote: 0, commit: 0 },
  start: { index: 0, term: 0 },
  outline: { terms: [], confs: [], lastIndex: 0, bytes: 0 },
  entries: [],
};

/** A process that starts on the disk of `world`, and dies at its `crashAtStep`th step. */
export async function boot(
  world: CrashWorld,
  given: {
    readonly recovered?: Map<GroupId, RecoveredGroup>;
    readonly logged?: Set<GroupId>;
    readonly crashAtStep?: number;
    readonly lockLimits?: LockLimitOptions;
    readonly authRevision?: () => number;
    readonly others?: OtherRanges;
    readonly leaseAuditMs?: number;
  } = {},
) {
  const { engine, disk, crashed } = await world.boot(given.crashAtStep);
  const logged = given.logged ?? new Set<GroupId>();
  const recovered = given.recovered ?? new Map([...logged].map((groupId) => [groupId, NOTHING_LOGGED]));
  const [clock, logger, host] = [nodeClock(), silentLogger, new QuietHost(logged)];
  const checkpointer = new Checkpointer(engine, { clock, logger, options: { intervalMs: 3_600_000, bytes: 1 << 30 } });
  const failures: unknown[] = [];
  const store = new Store({
    ...{ nodeId: 1, engine, disk, checkpointer, host, clock, logger, recovered, drawer: NOBODY_NUMBERS },
    ...{ dialer: NOBODY_ANSWERS, others: given.others ?? NO_OTHER_RANGES, knownRanges: () => [] },
    authRevision: given.authRevision ?? (() => 0),
    options: {
      ...{ watchRingBytesMax: 1_000, compactionRetentionMs: 0, outcomeBytesMax: 1_000_000, timeCarryMs: 30_000 },
      ...(given.lockLimits && { lockLimits: given.lockLimits }),
      ...(given.leaseAuditMs !== undefined && { leaseAuditMs: given.leaseAuditMs }),
    },
    onFailure: (error) => void failures.push(error),
  });
  return { engine, checkpointer, host, store, recovered, crashed, failures };
}

export type Booted = Awaited<ReturnType<typeof boot>>;

export function replicaOf({ store }: { readonly store: Store }): RangeReplica {
  const [replica] = [...store.replicas()];
  if (replica === undefined) throw new Error('there is a replica');
  return replica;
}
