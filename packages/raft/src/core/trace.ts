/**
 * An optional trace of what a replica does, event by event, against which an external model can check a run (in the
 * manner of etcd-io/raft's state trace and its TLA+ specification `traceetcdraft`).
 *
 * T1. Events come in the order in which the core acted. Each shows the state right after it; `receive` shows the state
 *     before the message is processed.
 * T2. The trace is complete: term, role, vote, commit index, end of the log and configuration change only with an event
 *     that shows it. Every message has its `send` event when it leaves, not while it waits for an fsync.
 * T3. Without a sink, tracing costs nothing.
 */
import type { ConfState, Message, ReplicaId, Role } from './types.ts';

export type TraceEventName =
  /** The core was created from the durable state. */
  | 'start'
  /** A wait for a leader is over: the replica campaigns. */
  | 'timeout'
  | 'becomeFollower'
  | 'becomePreCandidate'
  | 'becomeCandidate'
  | 'becomeLeader'
  /** A vote was given; its answer leaves when it is durable. */
  | 'vote'
  | 'send'
  | 'receive'
  /** A leader appended an entry of its own. */
  | 'append'
  /** A follower took over entries; some of its own may have been truncated. */
  | 'accept'
  | 'commit'
  /** A mark was reported durable. */
  | 'persisted'
  | 'applyConf'
  /** The log restarted after an installed snapshot. */
  | 'restartAtSnapshot';

export interface TraceEvent {
  readonly node: ReplicaId;
  readonly event: TraceEventName;
  readonly term: number;
  readonly vote: ReplicaId;
  readonly commit: number;
  /** Index and term of the last entry. */
  readonly log: readonly [lastIndex: number, lastTerm: number];
  readonly conf: ConfState;
  readonly role: Role;
  /** What is sent or received. */
  readonly message?: Message;
}

/** Called synchronously, from within the core: it must not call back into it. */
export type TraceSink = (event: TraceEvent) => void;

/** The part of a replica's state that an event shows. */
interface TracedState extends Pick<TraceEvent, 'term' | 'vote' | 'commit' | 'conf' | 'role'> {
  readonly id: ReplicaId;
  readonly config: { readonly trace?: TraceSink };
  readonly log: { readonly lastIndex: number; readonly lastTerm: number };
}

export function trace(s: TracedState, event: TraceEventName, message?: Message): void {
  const sink = s.config.trace;
  if (sink === undefined) return; // T3
  const { id: node, term, vote, commit, conf, role } = s;
  const log = [s.log.lastIndex, s.log.lastTerm] as const;
  sink({ node, event, term, vote, commit, log, conf, role, ...(message !== undefined && { message }) });
}

/**
 * One line of JSON, without a line end. Entries are shown by position, type and size, as [index, term, type, bytes].
 */
export function traceLine(event: TraceEvent): string {
  const { message } = event;
  if (message?.type !== 'append') return JSON.stringify(event);
  const entries = message.entries.map(({ index, term, type, data }) => [index, term, type, data.length]);
  return JSON.stringify({ ...event, message: { ...message, entries } });
}
