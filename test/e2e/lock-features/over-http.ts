/** Locks of every kind over HTTP. Each call is repeated at one node after the other until it is answered. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { eventually, FinalError } from '../eventually.ts';
import { type Courses, shown, WHILE, type World, waiters } from './course.ts';

export const OVER_HTTP: Courses = {
  async *'locks are acquired, waited for, renewed and released over HTTP'(world) {
    const { client, name } = world;
    const held = await ask(world, 'acquire', { ttl: '30s', token: guid('first') });
    yield 'held';
    expect(await ask(world, 'renew', held)).toMatchObject({ ttlMs: 30_000 });
    const waiting = ask(world, 'acquire', { ttl: '30s', wait: '60s', token: guid('second') });
    await waiters(world, name, 1);
    yield 'waiting';
    expect(await client.locks.check([{ name, version: Number(held.version) }])).toEqual([true]);
    expect(await ask(world, 'release', held)).toMatchObject({ released: true });
    const next = await waiting;
    expect(next.version).toBeGreaterThan(Number(held.version));
    await ask(world, 'release', next);
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'a reader writes and reads again over HTTP'(world) {
    const { name } = world;
    const [one, other] = [
      await ask(world, 'acquire', reader(guid('one'))),
      await ask(world, 'acquire', reader(guid('other'))),
    ];
    yield 'held';
    const upgrading = ask(world, 'upgrade', { ...one, wait: '60s' });
    await waiters(world, name, 1);
    const second = ask(world, 'upgrade', { ...other, wait: '60s' });
    await expect(second).rejects.toThrow('LOCK_UPGRADE_CONFLICT');
    yield 'waiting';
    expect(await ask(world, 'release', other)).toMatchObject({ released: true });
    const alone = await upgrading;
    expect(alone.version).toBeGreaterThan(Number(other.version));
    expect(await shown(world, name)).toMatchObject({ kind: 'exclusive', holders: [{ version: alone.version }] });
    const shared = await ask(world, 'downgrade', alone);
    expect(await shown(world, name)).toMatchObject({ kind: 'shared', holders: [{ version: shared.version }] });
    expect(await ask(world, 'release', shared)).toMatchObject({ released: true });
  },

  async *'permits are taken, waited for and given back over HTTP'(world) {
    const { name } = world;
    const permits = (token: string) => ({ capacity: 3, permits: 2, ttl: '30s', token });
    const held = await ask(world, 'acquire', permits(guid('first')));
    yield 'held';
    expect(await ask(world, 'renew', held)).toMatchObject({ ttlMs: 30_000 });
    const waiting = ask(world, 'acquire', { ...permits(guid('second')), wait: '60s' });
    await waiters(world, name, 1);
    yield 'waiting';
    expect(await shown(world, name)).toMatchObject({ kind: 'semaphore', permits: 2, capacity: 3, waiterCount: 1 });
    await ask(world, 'release', held);
    await ask(world, 'release', await waiting);
    expect(await shown(world, name)).toBeUndefined();
  },

  async *'parties meet at a barrier, leave it, and others pass over HTTP'(world) {
    const { name } = world;
    const enters = (token: string) => ask(world, 'acquire', { parties: 2, ttl: '30s', token, wait: '60s' });
    const stays = await Promise.all([enters(guid('one')), enters(guid('other'))]);
    yield 'held';
    for (const stay of stays) expect(await ask(world, 'renew', stay)).toMatchObject({ ttlMs: 30_000 });
    const leaving = ask(world, 'leave', { ...stays[0], wait: '60s' });
    const passing = ask(world, 'acquire', { pass: true, ttl: '30s', token: guid('waiter'), wait: '60s' });
    await eventually('two wait to pass', async () => (await shown(world, name))?.passing === 2);
    yield 'waiting';
    const left = await ask(world, 'leave', { ...stays[1], wait: '60s' });
    expect((await leaving).version).toBe(left.version);
    for (const inside of [...stays, await passing]) await ask(world, 'release', inside);
    expect(await shown(world, name)).toBeUndefined();
  },
};

function reader(token: string) {
  return { shared: true, ttl: '30s', token };
}

/** A token that cannot be guessed, but that tells a failing test whose it is. */
function guid(who: string): string {
  return `${who} ${randomUUID()}`;
}

type Answer = Readonly<Record<string, unknown>>;

/** Repeats a call at one node after the other until it is answered, as docs/how-to/locks/lock-over-http.md advises. */
function ask({ http, name }: World, call: string, body: object): Promise<Answer> {
  const path = `/v1/locks/default/${encodeURIComponent(name)}/${call}`;
  let turn = 0;
  return eventually(
    `an answer to ${call}`,
    async () => {
      const response = await fetch(`http://${http[turn++ % http.length]}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      if (response.ok) return (await response.json()) as Answer;
      if ([503, 504].includes(response.status)) return undefined;
      throw new FinalError(`${response.status}: ${await response.text()}`);
    },
    WHILE,
  );
}
