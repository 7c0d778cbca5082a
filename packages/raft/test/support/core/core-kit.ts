/** One core under the hands of a unit test: the test plays the host, the disk and the other replicas. */
import { SeededRandom, utf8 } from '@remora/base';
import type { ProgressStatus, RaftConfig, RaftInitial } from '../../../src/core/config.ts';
import { changeConf } from '../../../src/core/membership/conf-change.ts';
import { decodeConfChange } from '../../../src/core/membership/conf-change-codec.ts';
import { confOf } from '../../../src/core/membership/membership.ts';
import { RaftCore } from '../../../src/core/raft.ts';
import type {
  AppendRequest,
  AppendResponse,
  Entry,
  Message,
  PersistMark,
  Ready,
  ReplicaId,
} from '../../../src/core/types.ts';

export const ELECTION_TICKS = 10;
export const HEARTBEAT_TICKS = 3;

export interface KitOptions extends Partial<RaftInitial> {
  readonly id?: ReplicaId;
  readonly voters?: readonly ReplicaId[];
  readonly learners?: readonly ReplicaId[];
  readonly config?: Partial<RaftConfig>;
}

export function makeCore(options: KitOptions = {}): RaftCore {
  const { id = 1, voters = [1, 2, 3], learners = [], config, ...initial } = options;
  return new RaftCore(
    {
      id,
      electionTicks: ELECTION_TICKS,
      heartbeatTicks: HEARTBEAT_TICKS,
      maxEntryBytesPerMessage: 1000,
      maxInflightMessages: 8,
      maxInflightBytes: 10_000,
      maxUncommittedBytes: 10_000,
      maxApplyingBytes: 10_000,
      random: new SeededRandom(7),
      ...config,
    },
    {
      hardState: { term: 0, vote: 0, commit: 0 },
      conf: confOf(voters, learners),
      start: { index: 0, term: 0 },
      entries: [],
      applied: 0,
      restarted: false,
      ...initial,
    },
  );
}

/** Everything there is to do, in one `Ready`; nothing is persisted or applied. */
export interface Taken {
  readonly messages: Message[];
  readonly marks: PersistMark[];
  readonly committed: Entry[];
  readonly readies: Ready[];
}

export function take(core: RaftCore): Taken {
  const taken: Taken = { messages: [], marks: [], committed: [], readies: [] };
  while (core.hasReady()) {
    const ready = core.ready();
    taken.messages.push(...ready.messages);
    if (ready.persist !== undefined) taken.marks.push(ready.persist.mark);
    taken.committed.push(...ready.committed);
    taken.readies.push(ready);
  }
  return taken;
}

/** Like `take`, with everything persisted and applied as it comes. Returns what was sent. */
export function run(core: RaftCore): Message[] {
  const messages: Message[] = [];
  while (core.hasReady()) {
    const ready = core.ready();
    messages.push(...ready.messages);
    if (ready.persist !== undefined) core.persisted(ready.persist.mark);
    for (const entry of ready.committed) apply(core, entry);
  }
  return messages;
}

/** Applies an entry as a host does: a membership change takes effect if it is possible. */
export function apply(core: RaftCore, entry: Entry): void {
  if (entry.type === 'conf') {
    const next = changeConf(core.conf, decodeConfChange(entry.data));
    if (!('invalid' in next)) core.applyConf(next);
  }
  core.appliedTo(entry.index);
}

export function tick(core: RaftCore, times: number): void {
  for (let i = 0; i < times; i++) core.tick();
}

/** Ticks until the core asks for (pre-)votes. */
export function tickUntilCampaign(core: RaftCore): Message[] {
  const sent: Message[] = [];
  for (let i = 0; i < 2 * ELECTION_TICKS; i++) {
    core.tick();
    sent.push(...run(core));
    if (core.role !== 'follower') return sent;
  }
  return sent;
}

/** A leader of its first term whose followers, except those given as silent, hold everything. */
export function makeLeader(options: KitOptions & { readonly silent?: readonly ReplicaId[] } = {}): RaftCore {
  const core = makeCore(options);
  const others = elect(core);
  for (const from of [...others, ...core.conf.learners]) if (!options.silent?.includes(from)) ack(core, from);
  run(core);
  return core;
}

/** Makes it the leader of a new term, with the votes of all other voters, whom it returns. */
export function elect(core: RaftCore): readonly ReplicaId[] {
  tickUntilCampaign(core);
  const others = core.conf.voters.filter((id) => id !== core.id);
  for (const from of others) {
    core.step({ type: 'preVoteResponse', from, to: core.id, term: core.term + 1, reject: false });
  }
  run(core);
  for (const from of others) core.step({ type: 'voteResponse', from, to: core.id, term: core.term, reject: false });
  run(core);
  return others;
}

/** `from` acknowledges everything up to `index`, by default the whole log. */
export function ack(core: RaftCore, from: ReplicaId, index = core.status().lastIndex, commit = core.commit): void {
  const { id: to, term } = core;
  core.step({ type: 'appendResponse', from, to, term, reject: false, index, hintIndex: 0, hintTerm: 0, commit });
}

export function propose(core: RaftCore, text: string): void {
  core.propose(utf8(text));
}

/** Entries of the given terms, from index `first` on. */
export function entries(first: number, ...terms: number[]): Entry[] {
  return terms.map((term, i) => ({ index: first + i, term, type: 'normal', data: utf8(`${first + i}@${term}`) }));
}

export function append(
  core: RaftCore,
  m: { from?: ReplicaId; term: number; prev: [index: number, term: number]; entries?: Entry[]; commit?: number },
): void {
  core.step({
    type: 'append',
    from: m.from ?? 2,
    to: core.id,
    term: m.term,
    prevIndex: m.prev[0],
    prevTerm: m.prev[1],
    entries: m.entries ?? [],
    commit: m.commit ?? 0,
  });
}

export function heartbeat(core: RaftCore, from: ReplicaId, term: number, commit = 0): void {
  core.step({ type: 'heartbeat', from, to: core.id, term, commit, readContext: 0 });
}

export function ofType<T extends Message['type']>(
  messages: readonly Message[],
  type: T,
): Extract<Message, { type: T }>[] {
  return messages.filter((m): m is Extract<Message, { type: T }> => m.type === type);
}

/** The appends among `messages` that go to one replica. */
export function appendsTo(messages: readonly Message[], to: ReplicaId): AppendRequest[] {
  return ofType(messages, 'append').filter((m) => m.to === to);
}

export function progressOf(core: RaftCore, replica: ReplicaId): ProgressStatus | undefined {
  return core.status().progress.find((p) => p.replica === replica);
}

/** `from` rejects the append after `index`. */
export function reject(core: RaftCore, from: number, m: { index: number; hint: [index: number, term: number] }): void {
  const response: AppendResponse = {
    type: 'appendResponse',
    from,
    to: core.id,
    term: core.term,
    reject: true,
    index: m.index,
    hintIndex: m.hint[0],
    hintTerm: m.hint[1],
    commit: 0,
  };
  core.step(response);
}

export function answerHeartbeat(core: RaftCore, from: number, readContext = 0): void {
  core.step({ type: 'heartbeatResponse', from, to: core.id, term: core.term, commit: core.commit, readContext });
}

/** Everything is acknowledged by `from`, and applied. */
export function settle(core: RaftCore, from: readonly ReplicaId[]): void {
  run(core);
  for (const id of from) ack(core, id);
  run(core);
}
