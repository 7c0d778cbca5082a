import { SeededRandom } from '@remora/base';
import type { Command } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { Backend } from '../backend.ts';
import { LockApi } from './lock-service.ts';

/** The lease of the session that a gateway asks for. */
function leaseAsked(requestId: string, seed: number, user?: string): bigint {
  const asked: Command[] = [];
  const backend = { command: (command: Command) => asked.push(command) } as unknown as Backend;
  const request = { ttlMs: 5_000n, attributes: {}, requestId, condition: undefined };
  const principal = user === undefined ? undefined : ({ name: user, method: 'token' } as const);
  new LockApi(backend, new SeededRandom(seed)).openSession(
    request,
    { timeoutMs: 1_000, callerMs: undefined, seen: { newest: 0 }, principal },
    () => {},
  );
  const [command] = asked;
  if (command?.type !== 'leaseGrant') throw new Error('a session is opened by a lease');
  return command.id;
}

test('a session that is asked for again under its request id is of the same lease, at whichever gateway (LA1)', () => {
  expect(leaseAsked('r1', 1)).toBe(leaseAsked('r1', 2));
  expect(leaseAsked('r1', 1)).not.toBe(leaseAsked('r2', 1));
  expect(leaseAsked('r1', 1)).toBeGreaterThan(0n);
  expect(BigInt.asIntN(64, leaseAsked('r1', 1))).toBe(leaseAsked('r1', 1));
});

test('the same request id of another user is of another lease', () => {
  expect(leaseAsked('r1', 1, 'ann')).toBe(leaseAsked('r1', 2, 'ann'));
  expect(leaseAsked('r1', 1, 'ann')).not.toBe(leaseAsked('r1', 1, 'bob'));
  expect(leaseAsked('r1', 1, 'ann')).not.toBe(leaseAsked('r1', 1));
});

test('without a request id each is another one', () => {
  expect(leaseAsked('', 1)).not.toBe(leaseAsked('', 2));
});

/** Whether a release leaves a mark that stops an acquire of its owner which is still on its way. */
function leavesMark(attempt: number): boolean {
  const asked: Command[] = [];
  const backend = { command: (command: Command) => asked.push(command) } as unknown as Backend;
  const lock = { namespace: '', name: Buffer.from('l') };
  const owner = { session: { id: 7n, incarnation: 1n }, token: 't' };
  const request = { lock, owner, all: true, attempt, requestId: '' };
  new LockApi(backend, new SeededRandom(1)).release(
    request,
    { timeoutMs: 1_000, callerMs: undefined, seen: { newest: 0 }, principal: undefined },
    () => {},
  );
  const [command] = asked;
  if (command?.type !== 'lock' || command.command.type !== 'release') throw new Error('a release is one');
  return command.command.deadlineMs > 0;
}

test('a release stops an earlier asking for the acquire that it ends, where that has a number', () => {
  expect(leavesMark(3)).toBe(true);
  // What is acquired later could not be told from it.
  expect(leavesMark(0)).toBe(false);
});
