/**
 * A small model of Raft that reads a trace of a run: what holds of one replica, and between them. A state machine is
 * not modelled, nor durability; a TLA+ model outside would do that from the same lines.
 *
 * K1. What changes from one event of a replica to the next is what the later event stands for (T2 of the trace).
 * K2. Within a life of a replica, term and commit index never fall, and it votes once in a term.
 * K3. One leader per term.
 * K4. Every message received was sent before, by its sender.
 */
import { isDeepStrictEqual } from 'node:util';
import type { TraceEvent, TraceEventName } from '../../src/core/trace.ts';

type Field = 'term' | 'vote' | 'commit' | 'log' | 'conf' | 'role';

const FIELDS: readonly Field[] = ['term', 'vote', 'commit', 'log', 'conf', 'role'];

/** What each event may have changed (K1). */
const CHANGES: Readonly<Record<TraceEventName, readonly Field[]>> = {
  start: FIELDS,
  timeout: [],
  becomeFollower: ['term', 'vote', 'role'],
  becomePreCandidate: ['role'],
  becomeCandidate: ['term', 'vote', 'role'],
  becomeLeader: ['role'],
  vote: ['vote'],
  send: [],
  receive: [],
  append: ['log'],
  accept: ['log'],
  commit: ['commit'],
  persisted: [],
  applyConf: ['conf'],
  restartAtSnapshot: ['log', 'commit', 'conf'],
};

/** What is wrong with the trace; empty when nothing is. */
export function traceViolations(events: readonly TraceEvent[]): string[] {
  const last = new Map<number, TraceEvent>();
  const leaders = new Map<number, number>();
  const sent = new Set<string>();
  const found: string[] = [];
  for (const [i, event] of events.entries()) {
    const complain = (what: string): void => {
      found.push(`event ${i} (n${event.node} ${event.event}): ${what}`);
    };
    const before = last.get(event.node);
    last.set(event.node, event);
    if (before !== undefined) checkStep(before, event, complain);
    else if (event.event !== 'start') complain('K1: the first event is the start');
    if (event.event === 'becomeLeader') {
      const known = leaders.get(event.term) ?? event.node;
      leaders.set(event.term, event.node);
      if (known !== event.node) complain(`K3: n${known} leads term ${event.term}`);
    }
    if (event.event === 'send') sent.add(JSON.stringify(event.message));
    if (event.event === 'receive' && !sent.has(JSON.stringify(event.message))) complain('K4: it was not sent');
  }
  return found;
}

function checkStep(before: TraceEvent, event: TraceEvent, complain: (what: string) => void): void {
  for (const field of FIELDS) {
    if (!CHANGES[event.event].includes(field) && !isDeepStrictEqual(before[field], event[field])) {
      complain(`K1: ${field} changed`);
    }
  }
  if (event.event === 'start') return;
  if (event.term < before.term) complain('K2: the term fell');
  if (event.commit < before.commit) complain('K2: the commit index fell');
  const votedAgain = event.term === before.term && before.vote !== 0 && event.vote !== before.vote;
  if (votedAgain) complain('K2: a second vote in a term');
}
