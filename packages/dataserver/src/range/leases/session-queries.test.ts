import { EMPTY_BYTES } from '@remora/base';
import type { AcquireAs } from '@remora/lock';
import type { Command, SessionQuery } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { StateBed } from '../../../test/support/state-bed.ts';
import { querySessions } from './session-queries.ts';

const SHARED: AcquireAs = { type: 'shared' };

async function granted(bed: StateBed, id: bigint, host: string): Promise<number> {
  const result = await bed.ok({ type: 'leaseGrant', id, ttlMs: 5_000, attributes: { host } });
  if (result.type !== 'leaseGrant') throw new Error('a grant answers as one');
  return result.incarnation;
}

function acquire(name: string, session: { lease: bigint; incarnation: number }, as?: AcquireAs, attempt = 1): Command {
  const lock = { namespace: 'n', name: Buffer.from(name) };
  const times = { wait: true, waitUntilMs: 0, deadlineMs: 0, depthMax: 1 };
  const command = {
    type: 'acquire',
    lock,
    owner: { session, token: 't' },
    data: EMPTY_BYTES,
    attempt,
    ...times,
  } as const;
  return { type: 'lock', command: as === undefined ? command : { ...command, as } };
}

function ask({ state, engine }: StateBed, query: SessionQuery) {
  const locks = {
    timeMs: 0,
    get: (key: Uint8Array) => engine.get(key),
    scan: (start: Uint8Array, end: Uint8Array, limit: number) => engine.scanResident({ start, end, limit }),
  };
  return querySessions({ state, locks, remainingMs: () => 70 }, query);
}

describe('sessions of a range', () => {
  test('are listed page by page in the order of their rows, whatever belongs to them', async () => {
    const bed = new StateBed();
    for (const id of [9n, -1n, 2n, 5n]) {
      const incarnation = await granted(bed, id, `h${id}`);
      await bed.ok(acquire(`of ${id}`, { lease: id, incarnation }));
    }
    const pages: bigint[][] = [];
    let next = 0n;
    do {
      const page = ask(bed, { type: 'sessions', after: next, limit: 3, attributes: {} });
      if (page.type !== 'sessions') throw new Error('sessions were asked for');
      pages.push(page.sessions.map(({ id }) => id));
      next = page.next;
    } while (next !== 0n);
    expect(pages).toEqual([[2n, 5n, 9n], [-1n]]);
  });

  test('are found by their owners; leases of plain keys have none', async () => {
    const bed = new StateBed();
    const grant = { type: 'leaseGrant', ttlMs: 5_000, attributes: {} } as const;
    for (const [id, owner] of [
      [1n, 'ada'],
      [2n, ''],
      [3n, 'bob'],
      [4n, 'ada'],
    ] as const)
      await bed.ok({ ...grant, id, owner });
    await bed.ok({ ...grant, id: 5n });
    const found = (owner?: string) => {
      const whose = owner === undefined ? {} : { owner };
      const page = ask(bed, { type: 'sessions', after: 0n, limit: 9, attributes: {}, ...whose });
      return page.type === 'sessions' && page.sessions.map((session) => `${session.id} ${session.owner}`);
    };
    expect([found('ada'), found(''), found('eve')]).toEqual([['1 ada', '4 ada'], ['2 '], []]);
    expect(found()).toEqual(['1 ada', '2 ', '3 bob', '4 ada', '5 undefined']);
  });

  test('are found by what their attributes begin with', async () => {
    const bed = new StateBed();
    for (const [id, host] of [
      [1n, 'web-1'],
      [2n, 'db-1'],
      [3n, 'web-2'],
    ] as const)
      await granted(bed, id, host);
    const found = (attributes: Record<string, string>) => {
      const page = ask(bed, { type: 'sessions', after: 0n, limit: 9, attributes });
      return page.type === 'sessions' && page.sessions.map(({ id }) => id);
    };
    expect([found({ host: 'web-' }), found({ host: 'web-2' }), found({ rack: '' })]).toEqual([[1n, 3n], [3n], []]);
  });

  test('have no attributes but those that they were given, whatever is asked for', async () => {
    const bed = new StateBed();
    await granted(bed, 1n, 'web-1');
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      const attributes = Object.fromEntries([[name, '']]);
      const page = ask(bed, { type: 'sessions', after: 0n, limit: 9, attributes });
      expect(page, name).toMatchObject({ sessions: [] });
    }
  });

  test('are shown with what they hold and what they wait for, and not with what others do', async () => {
    const bed = new StateBed();
    const [mine, other] = [
      { lease: 1n, incarnation: await granted(bed, 1n, 'a') },
      { lease: 2n, incarnation: await granted(bed, 2n, 'b') },
    ];
    await bed.ok(acquire('alone', mine));
    await bed.ok(acquire('alone', other));
    for (const session of [mine, other]) await bed.ok(acquire('shared', session, SHARED));
    await bed.ok(acquire('shared', other, { type: 'upgrade' }, 2));
    await bed.ok(acquire('taken', other));
    await bed.ok(acquire('taken', mine));
    await bed.ok(acquire('permits', mine, { type: 'permits', permits: 2, capacity: 3 }));
    const gist = (id: bigint) => {
      const shown = ask(bed, { type: 'session', id, incarnation: 0 });
      if (shown.type !== 'session') throw new Error('a session was asked for');
      return shown.locks.map(({ lock, mode, position, version }) => {
        return `${String(lock.name)} ${mode} ${position} ${version > 0}`;
      });
    };
    expect(gist(1n)).toEqual([
      ...['alone exclusive 0 true', 'permits permits 0 true', 'shared shared 0 true', 'taken exclusive 1 false'],
    ]);
    expect(gist(2n)).toEqual([
      ...['alone exclusive 1 false', 'shared shared 0 true', 'shared upgrade 1 false', 'taken exclusive 0 true'],
    ]);
    expect(ask(bed, { type: 'session', id: 1n, incarnation: 0 })).toMatchObject({
      session: { id: 1n, incarnation: mine.incarnation, ttlMs: 5_000, remainingMs: 70, attributes: { host: 'a' } },
      more: false,
    });
    const gone = { type: 'session', session: undefined, locks: [], more: false };
    expect(ask(bed, { type: 'session', id: 3n, incarnation: 0 })).toEqual(gone);
    expect(ask(bed, { type: 'session', id: 1n, incarnation: 999 })).toEqual(gone);
  });
});
