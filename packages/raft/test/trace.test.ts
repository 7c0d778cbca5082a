import { describe, expect, test } from 'vitest';
import { type TraceEvent, traceLine } from '../src/core/trace.ts';
import { traceViolations } from './runner/trace-checker.ts';
import { HostBed } from './support/host/host-bed.ts';

const GROUP = 2;

/** A run of three hosts with an election, writes, a crash, a snapshot and a restart; in JSON lines and back. */
async function tracedRun(): Promise<TraceEvent[]> {
  const lines: string[] = [];
  const bed = new HostBed({
    seed: 11,
    options: { tailEntries: 2 },
    faults: { duplicatePerMille: 50, jitterMs: 5, reorder: true },
    extra: { trace: (_, event) => lines.push(traceLine(event)) },
  });
  for (const id of [1, 2, 3]) bed.start(id);
  bed.addGroup(GROUP, [1, 2, 3]);
  for (let i = 0; i < 5; i++) await bed.write(GROUP, `a${i}`);
  const first = await bed.leader(GROUP);
  await bed.crash(first);
  for (let i = 0; i < 20; i++) await bed.write(GROUP, `b${i}`);
  const second = await bed.leader(GROUP);
  bed.group(second, GROUP).checkpointed(bed.counter(second, GROUP).checkpoint());
  bed.start(first);
  await bed.until('the restarted node is up to date', () => bed.counter(first, GROUP).history.includes('b19'));
  expect(bed.fatal()).toEqual([]);
  return lines.map((line) => JSON.parse(line));
}

describe('a trace of three hosts', () => {
  test('is complete: the checker accounts for every change and every message, and all kinds of events occur', async () => {
    const events = await tracedRun();
    expect(traceViolations(events)).toEqual([]);
    expect([...new Set(events.map(({ event }) => event))].sort()).toEqual([
      'accept',
      'append',
      'becomeCandidate',
      'becomeFollower',
      'becomeLeader',
      'becomePreCandidate',
      'commit',
      'persisted',
      'receive',
      'restartAtSnapshot',
      'send',
      'start',
      'timeout',
      'vote',
    ]);
  });

  test('is told apart from one that lacks or distorts an event', async () => {
    const events = await tracedRun();
    const without = (name: TraceEvent['event']) => {
      // One after which its replica does something that changes nothing.
      const at = events.findLastIndex(({ event, node }, i) => {
        const next = events.slice(i + 1).find((later) => later.node === node)?.event;
        return event === name && (next === 'send' || next === 'receive' || next === 'persisted' || next === 'append');
      });
      expect(at).not.toBe(-1);
      return events.toSpliced(at, 1);
    };
    const changed = (name: TraceEvent['event'], change: (event: TraceEvent) => Partial<TraceEvent>) => {
      const at = events.findLastIndex(({ event }) => event === name);
      return events.map((event, i) => (i === at ? { ...event, ...change(event) } : event));
    };
    for (const name of ['becomeCandidate', 'becomeLeader', 'vote', 'append', 'commit'] as const) {
      expect(traceViolations(without(name)).join('\n')).toMatch(/K1/);
    }
    expect(traceViolations(changed('receive', ({ term }) => ({ term: term - 1 }))).join('\n')).toMatch(/K2: the term/);
    expect(traceViolations(changed('commit', () => ({ commit: 0 }))).join('\n')).toMatch(/K2: the commit index/);
    expect(traceViolations(changed('persisted', ({ vote }) => ({ vote: vote + 1 }))).join('\n')).toMatch(
      /K2: a second/,
    );
    const lastLeader = events.findLast(({ event }) => event === 'becomeLeader')?.node;
    const other = events.find(({ event, node }) => event === 'becomeFollower' && node !== lastLeader)?.node ?? 0;
    expect(traceViolations(changed('becomeLeader', () => ({ node: other }))).join('\n')).toMatch(/K3|K1/);
    const leader = events.find(({ event }) => event === 'becomeLeader');
    expect(traceViolations([...events, { ...leader, node: 999 } as TraceEvent]).join('\n')).toMatch(/K3/);
    const unsent = { type: 'timeoutNow', from: 201, to: 202, term: 99 } as const;
    expect(traceViolations(changed('receive', () => ({ message: unsent }))).join('\n')).toMatch(/K4/);
  });
});
