/** What a link may hold whose caller is not known as a node: anyone may open any number of them. */
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { echo, silent } from '../../test/support/rpc-methods.ts';
import { createMemoryLink } from '../testing/memory-link.ts';
import { ANONYMOUS_CALLER, type Caller } from './access.ts';
import { LinkCaller } from './caller.ts';
import { ASK, encodeFrame } from './frame.ts';
import { createRpcRegistry } from './registry.ts';
import { serveLink } from './server.ts';

const NODE: Caller = { kind: 'node', nodeId: 4 };
const large = { ...echo, name: 'test.large', callers: 'joiners' as const };
const waiting = { ...silent, callers: 'joiners' as const };

function setUp() {
  const clock = new ManualClock();
  const registry = createRpcRegistry();
  registry.handle(large, (_text, _context, done) => done(undefined, 'x'.repeat(100_000)));
  registry.handle(waiting, () => {});
  const pair = createMemoryLink(clock);
  const now = { caller: ANONYMOUS_CALLER as Caller };
  const served = serveLink({ link: pair.server, registry, clock, caller: now.caller, identify: () => now.caller });
  const caller = new LinkCaller({ link: pair.client, clock });
  const answers: string[] = [];
  const call = (method: typeof echo, text = ''): void => {
    caller.call(method, text, { timeoutMs: 60_000 }, (error) => answers.push(error?.code ?? 'ok'));
  };
  const calls = (count: number, method: typeof echo, text?: string): string[] => {
    answers.length = 0;
    for (let i = 0; i < count; i++) call(method, text);
    clock.advance(10);
    return [...answers];
  };
  clock.advance(1);
  return { now, calls, served, pair, clock };
}

test('a joiner has few calls under way, until it is known as a node', () => {
  const { now, calls, served } = setUp();
  expect(calls(20, waiting)).toEqual(Array(4).fill('RESOURCE_EXHAUSTED'));
  expect(served.outstanding).toBe(16);
  now.caller = NODE;
  expect(calls(100, waiting)).toEqual([]);
  expect(served.outstanding).toBe(116);
});

test('the requests of a joiner that are under way hold few bytes, until it is known as a node', () => {
  const { now, calls } = setUp();
  expect(calls(3, waiting, 'x'.repeat(30_000))).toEqual(['RESOURCE_EXHAUSTED']);
  now.caller = NODE;
  expect(calls(10, waiting, 'x'.repeat(30_000))).toEqual([]);
});

test('few answers wait for a joiner that does not read them, until it is known as a node', () => {
  const count = (caller: Caller): number => {
    const { now, calls } = setUp();
    now.caller = caller;
    // All come in one frame, so all answers wait until its end.
    return calls(16, large).filter((answer) => answer === 'ok').length;
  };
  expect([count(ANONYMOUS_CALLER), count(NODE)]).toEqual([3, 16]);
});

test('a peer that binds a long method name loses its link', () => {
  const { pair, clock, calls } = setUp();
  pair.client.send(encodeFrame([[ASK.method, 9, 'x'.repeat(129)]]));
  clock.advance(1);
  expect(calls(1, large)).not.toContain('ok');
});
