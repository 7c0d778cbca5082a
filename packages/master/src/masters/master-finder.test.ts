import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { Method, RpcChannel, RpcDialer } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { MasterFinder } from './master-finder.ts';

type Answer = 'leads' | 'gone' | { readonly names: number };

const ASK: Method<undefined, string> = {
  name: 'master.ask',
  callers: 'nodes',
  encodeRequest: () => null,
  decodeRequest: () => undefined,
  encodeReply: (reply) => reply,
  decodeReply: (raw) => String(raw),
};

class Bed {
  readonly clock = new ManualClock();
  readonly asked: number[] = [];
  readonly passedOn: string[] = [];
  readonly answers: Record<number, Answer>;
  readonly finder: MasterFinder;
  /** As the replica of the node itself knows. */
  leaderHere = 0;

  constructor(answers: Record<number, Answer>) {
    this.answers = answers;
    const channel = (node: number): RpcChannel =>
      ({
        call: (
          _method: unknown,
          _request: unknown,
          _options: unknown,
          done: (error?: ServiceError, reply?: string) => void,
        ) => {
          this.asked.push(node);
          const answer = this.answers[node] ?? 'gone';
          if (answer === 'leads') done(undefined, 'done');
          else if (answer === 'gone') done(new ServiceError('UNAVAILABLE', 'no connection'));
          else done(new ServiceError('NOT_LEADER', 'no', { details: naming(answer.names) }));
          return { cancel() {} };
        },
      }) as unknown as RpcChannel;
    const dialer: RpcDialer = { channel, channelTo: () => channel(0) };
    this.finder = new MasterFinder({
      ...{ clock: this.clock, dialer, seeds: [], masters: [1, 2, 3], reachable: () => true },
      leaderHere: () => this.leaderHere,
      onLeaderAddress: (nodeId, address) => this.passedOn.push(`${nodeId} at ${address}`),
    });
  }

  /** Whom it asks, one after the other, until it is answered or has asked so often. */
  ask(times: number): readonly number[] {
    const before = this.asked.length;
    let answered = false;
    for (let i = 0; i < times && !answered; i++) {
      this.finder.call(ASK, undefined, { timeoutMs: 100 }, (error) => {
        answered = error === undefined;
      });
    }
    return this.asked.slice(before);
  }
}

const naming = (leaderNode: number) => ({ leaderNode, leaderAddress: `the address of ${leaderNode}` });

describe('who looks for the leader of the masters', () => {
  test('goes where it is told', () => {
    const bed = new Bed({ 1: { names: 3 }, 2: { names: 3 }, 3: 'leads' });
    expect(bed.ask(9)).toEqual([1, 3]);
    expect(bed.ask(9)).toEqual([3]);
  });

  test('does not go back to one that is gone while the others wait for it, but asks them until one of them leads', () => {
    const bed = new Bed({ 1: { names: 3 }, 2: { names: 3 }, 3: 'leads' });
    bed.ask(9);
    bed.answers[3] = 'gone';
    expect(new Set(bed.ask(12).slice(1))).toEqual(new Set([1, 2]));
    bed.answers[2] = 'leads';
    expect(bed.ask(9).length).toBeLessThanOrEqual(2);
  });

  test('asks it again when they go on naming it for as long as an election takes: it may have come back', () => {
    const bed = new Bed({ 1: { names: 3 }, 2: { names: 3 }, 3: 'gone' });
    bed.ask(3);
    bed.answers[3] = 'leads';
    bed.clock.advance(499);
    expect(bed.ask(100)).not.toContain(3);
    bed.clock.advance(1);
    expect(bed.ask(3).at(-1)).toBe(3);
  });

  test('goes at once to whom the own replica of the masters follows, and not to one that is gone', () => {
    for (const times of [4, 5, 6]) {
      const bed = new Bed({ 1: { names: 3 }, 2: { names: 3 }, 3: 'leads' });
      bed.ask(9);
      bed.answers[3] = 'gone';
      bed.leaderHere = 3;
      expect(bed.ask(times).filter((node) => node === 3)).toEqual([3]);
      bed.answers[2] = 'leads';
      bed.leaderHere = 2;
      expect(bed.ask(9)).toEqual([2]);
    }
  });

  test('knows since when no leader answers, and which of those that were asked are there', () => {
    const bed = new Bed({ 1: { names: 0 }, 2: 'gone', 3: { names: 0 } });
    expect(bed.finder.silence).toBeUndefined();
    bed.clock.advance(10);
    bed.ask(1);
    bed.clock.advance(10);
    bed.ask(2);
    expect(bed.finder.silence).toEqual({ sinceMs: 10, answering: new Set([1, 3]) });
    bed.answers[3] = 'gone';
    bed.ask(3);
    expect(bed.finder.silence).toEqual({ sinceMs: 10, answering: new Set([1]) });
    bed.answers[3] = 'leads';
    bed.ask(3);
    expect(bed.finder.silence).toBeUndefined();
  });

  test('passes on where the leader is, as a called node says', () => {
    const bed = new Bed({ 1: { names: 3 }, 2: { names: 3 }, 3: 'leads' });
    bed.ask(9);
    expect(bed.passedOn).toEqual(['3 at the address of 3']);
  });

  test('asks the only one there is, also when that is gone', () => {
    const bed = new Bed({ 1: 'gone' });
    bed.finder.viewed({ clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 1 });
    expect(bed.ask(1)).toEqual([1]);
  });
});
