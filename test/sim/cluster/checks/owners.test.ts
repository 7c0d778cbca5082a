import type { Principal } from '@remora/auth';
import type { Backend, BackendDone } from '@remora/gateway';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import { expect, test } from 'vitest';
import { checkedOwners, Owners } from './owners.ts';

const SESSION = { lease: 7n, incarnation: 3 };
const LOCK = { namespace: 'default', name: Buffer.from('l') };
const GRANT: Command = { type: 'leaseGrant', id: 7n, ttlMs: 5_000, attributes: {}, owner: 'ann' };
const RENEWAL: Query = { type: 'leaseKeepAlive', id: SESSION.lease, incarnation: SESSION.incarnation };
const RELEASE: Command = {
  type: 'lock',
  command: { type: 'release', lock: LOCK, owner: { session: SESSION, token: 't' }, all: true, deadlineMs: 0 },
};

/** A gateway that lets these users renew any session, and everybody do anything else. */
function gateway(renewers: readonly string[]): Backend {
  const reply = <Result>(result: unknown) => ({ result: result as Result, revision: 1, raftTerm: 1 });
  return {
    command: (command: Command, _options: object, done: BackendDone<CommandResult>) => {
      const granted = { type: 'leaseGrant', id: SESSION.lease, incarnation: SESSION.incarnation, ttlMs: 5_000 };
      done(undefined, reply(command.type === 'leaseGrant' ? granted : { type: command.type }));
      return () => {};
    },
    query: (query: Query, { principal }: { principal: Principal }, done: BackendDone<QueryResult>) => {
      const ttlMs = renewers.includes(principal.name ?? '') ? 5_000 : -1;
      done(undefined, reply({ ...query, ttlMs }));
      return () => {};
    },
  } as unknown as Backend;
}

/** What is found when ann begins a session, and then `user` asks. */
function found(renewers: readonly string[], user: string, asked: Command | Query): string {
  let failure: unknown;
  const owners = new Owners(['eve', 'bob'], (error) => {
    failure ??= error;
  });
  const backend = checkedOwners(gateway(renewers), owners);
  const as = (name: string) => ({
    principal: { name, method: 'certificate', door: 'pipe', address: undefined } as const,
    timeoutMs: 1_000,
  });
  backend.command(GRANT, as('ann'), () => {});
  if (asked.type === 'leaseKeepAlive') backend.query(asked, as(user), () => {});
  else backend.command(asked as Command, as(user), () => {});
  return failure === undefined ? '' : (failure as Error).message;
}

test('found: a stranger renews a session', () => {
  expect(found(['ann', 'eve'], 'ann', RENEWAL)).toContain('of ann was answered to eve');
});

test('found: another user renews a session, or releases a lock with it', () => {
  expect(found(['ann', 'bob'], 'bob', RENEWAL)).toContain('leaseKeepAlive with the session 7.3 of ann');
  expect(found(['ann'], 'bob', RELEASE)).toContain('lock with the session 7.3 of ann was answered to bob');
});

test('allowed: the owner does both', () => {
  expect(found(['ann'], 'ann', RENEWAL)).toBe('');
  expect(found(['ann'], 'ann', RELEASE)).toBe('');
});
