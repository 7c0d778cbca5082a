/** How a scenario's trace shows things: one line each, the same words everywhere. */
import { unreachable } from '@remora/base';
import type { ProgressStatus } from '../../src/core/config.ts';
import type { ConfChange } from '../../src/core/membership/conf-change.ts';
import { decodeConfChange } from '../../src/core/membership/conf-change-codec.ts';
import { isJoint } from '../../src/core/membership/membership.ts';
import type { ConfState, Entry, LogPosition, Message, Ready, ReplicaId } from '../../src/core/types.ts';

const TEXT_MAX = 24;

export function name(id: ReplicaId): string {
  return id === 0 ? '-' : `n${id}`;
}

/** `index@term`. */
export function at(position: LogPosition): string {
  return `${position.index}@${position.term}`;
}

export function showEntry(entry: Entry): string {
  return `${at(entry)} ${showData(entry)}`;
}

function showData({ type, data }: Entry): string {
  if (type === 'conf') return showChange(decodeConfChange(data));
  const text = Buffer.from(data).toString();
  return text.length > TEXT_MAX ? `"${text.slice(0, 4)}..." (${text.length} bytes)` : JSON.stringify(text);
}

/** `conf v4 r1 joint`: voter 4, without 1; `leave` without steps. */
function showChange({ steps, transition }: ConfChange): string {
  if (steps.length === 0) return 'conf leave';
  const letters = { addVoter: 'v', addLearner: 'l', remove: 'r' } as const;
  return `conf ${steps.map(({ type, replica }) => letters[type] + replica).join(' ')} ${transition}`;
}

function showEntries(entries: readonly Entry[]): string {
  return `[${entries.map(showEntry).join(', ')}]`;
}

function ids(list: readonly ReplicaId[]): string {
  return `(${list.join(',')})`;
}

export function showConf(conf: ConfState): string {
  let text = `voters=${ids(conf.voters)}`;
  if (isJoint(conf)) text += `&&${ids(conf.votersOutgoing)}`;
  if (conf.learners.length > 0) text += ` learners=${ids(conf.learners)}`;
  if (conf.learnersNext.length > 0) text += ` learnersNext=${ids(conf.learnersNext)}`;
  if (conf.autoLeave) text += ' autoLeave';
  return text;
}

export function showMessage(m: Message): string {
  const committed = 'committed' in m && m.committed !== undefined ? ` committed=${at(m.committed)}` : '';
  return `${name(m.from)}->${name(m.to)} ${m.type} term=${m.term}${details(m)}${committed}`;
}

function details(m: Message): string {
  switch (m.type) {
    case 'preVote':
      return ` last=${at({ index: m.lastIndex, term: m.lastTerm })}`;
    case 'vote':
      return ` last=${at({ index: m.lastIndex, term: m.lastTerm })}${m.force ? ' force' : ''}`;
    case 'preVoteResponse':
    case 'voteResponse':
      return m.reject ? ' rejected' : ' granted';
    case 'append':
      return ` prev=${at({ index: m.prevIndex, term: m.prevTerm })} entries=${showEntries(m.entries)} commit=${m.commit}`;
    case 'appendResponse': {
      const hint = ` hint=${at({ index: m.hintIndex, term: m.hintTerm })}`;
      return `${m.reject ? ` rejected${hint}` : ''} index=${m.index} commit=${m.commit}`;
    }
    case 'heartbeat':
    case 'heartbeatResponse':
      return ` commit=${m.commit}${m.readContext > 0 ? ` round=${m.readContext}` : ''}`;
    case 'snapshot':
      return ` at=${at(m.snapshot)} ${showConf(m.snapshot.conf)}`;
    case 'timeoutNow':
      return '';
    default:
      return unreachable(m);
  }
}

export function showPersist(persist: NonNullable<Ready['persist']>): string {
  let text = `persist #${persist.mark.sequence}`;
  if (persist.hardState !== undefined) {
    const { term, vote, commit } = persist.hardState;
    text += ` term=${term} vote=${name(vote)} commit=${commit}`;
  }
  if (persist.snapshot !== undefined) text += ` restartAt=${at(persist.snapshot)}`;
  return persist.entries.length > 0 ? `${text} entries=${showEntries(persist.entries)}` : text;
}

export function showProgress(pr: ProgressStatus): string {
  let text = `${name(pr.replica)}: ${pr.state} match=${pr.match} next=${pr.next} commit=${pr.commit}`;
  if (pr.learner) text += ' learner';
  if (pr.active) text += ' active';
  if (pr.steady) text += ' steady';
  if (pr.learner && pr.caughtUp) text += ' caughtUp';
  return pr.lagEntries > 0 ? `${text} lag=${pr.lagEntries}` : text;
}
