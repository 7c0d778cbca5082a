import { ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { GUID, HttpBed, lockPath } from './http-bed.ts';

let bed: HttpBed;
beforeEach(() => {
  bed = new HttpBed();
});

const BODY = { token: GUID, ttl: '1h' };
const RELEASE = { target: lockPath('l', 'release'), body: { token: BODY.token } };

/** From the given one on, the cluster takes no commands of a type: it says that they were not done. */
function fullFor(type: string, from: number): void {
  const { backend } = bed.world;
  const command = backend.command.bind(backend);
  let seen = 0;
  backend.command = (asked, options, done) => {
    if (typeOf(asked) !== type || seen++ < from) return command(asked, options, done);
    done(new ServiceError('RESOURCE_EXHAUSTED', 'too many commands wait'), undefined);
    return () => {};
  };
}

/** And now it takes them again. */
function takingAll(): void {
  Reflect.deleteProperty(bed.world.backend, 'command');
}

function typeOf(command: Command): string {
  return command.type === 'lock' ? command.command.type : command.type;
}

describe('a release that was done in part is not told as one that changed nothing, and can be repeated', () => {
  const rows = [
    { name: 'of a lock whose session could not be ended', had: 'the lock', type: 'leaseRevoke', from: 0 },
    { name: 'of a place that could not be given up', had: 'a place', type: 'cancel', from: 0 },
    { name: 'of a place whose other attempts could not be', had: 'a place', type: 'cancel', from: 1 },
    { name: 'of a place whose session could not be ended', had: 'a place', type: 'leaseRevoke', from: 0 },
    { name: 'of nothing, whose session could not be ended', had: 'nothing', type: 'leaseRevoke', from: 0 },
  ];
  test.each(rows)('$name', async ({ had, type, from }) => {
    const others = had === 'a place' ? 1 : 0;
    if (others > 0) await bed.acquire('l', { ttl: '1h' });
    if (had !== 'nothing') void bed.ask({ target: lockPath('l', 'acquire'), body: { ...BODY, wait: '1m' } });
    await bed.world.run(1_000);
    fullFor(type, from);
    expect(await bed.refused(RELEASE)).toBe('504 UNKNOWN_OUTCOME');
    takingAll();
    await bed.done(RELEASE);
    expect([await bed.users('l'), bed.world.backend.sessions]).toEqual([`${others}/0`, others]);
  });

  test('but one of which nothing was done is', async () => {
    const held = await bed.acquire('l', BODY);
    fullFor('release', 0);
    expect(await bed.refused({ ...RELEASE, body: held })).toBe('429 RESOURCE_EXHAUSTED');
    expect(await bed.users('l')).toBe('1/0');
  });
});

describe('a release whose session ends between two of its steps is no error', () => {
  const rows = ['the lock', 'a place', 'nothing'].flatMap((had) =>
    ['its own', 'a named'].flatMap((session) =>
      [1, 2, 3, 4].map((steps) => ({ name: `of ${had} in ${session} session, after ${steps}`, had, session, steps })),
    ),
  );
  test.each(rows)('$name', async ({ had, session, steps }) => {
    const others = had === 'a place' ? 1 : 0;
    if (others > 0) await bed.acquire('l', { ttl: '1h' });
    const shared = await bed.done<{ readonly session: string }>({ target: '/v1/sessions', body: { ttl: '1h' } });
    const named = session === 'a named' ? { session: shared.session } : {};
    const body = { ...(session === 'a named' ? named : { ttl: '1h' }), token: BODY.token, wait: '1m' };
    if (had !== 'nothing') void bed.ask({ target: lockPath('l', 'acquire'), body });
    await bed.world.run(1_000);
    const sessions = bed.world.backend.seen.flatMap(({ command }) =>
      command.type === 'leaseGrant' ? [command.id] : [],
    );
    endAfter(steps, sessions.slice(others));
    const { status, body: told } = await bed.world.until(
      bed.ask({ ...RELEASE, body: { ...named, token: BODY.token } }),
    );
    expect([status, (told as { readonly released: unknown }).released]).toEqual([200, expect.any(Boolean)]);
    expect(await bed.users('l')).toBe(`${others}/0`);
  });
});

/** Ends sessions when so many questions and commands have been answered. */
function endAfter(steps: number, sessions: readonly bigint[]): void {
  const { backend } = bed.world;
  const [command, query] = [backend.command.bind(backend), backend.query.bind(backend)];
  let seen = 0;
  const stepped = (): void => {
    if (++seen !== steps) return;
    for (const id of sessions)
      command({ type: 'leaseRevoke', id, incarnation: 0 }, { timeoutMs: 1_000, principal: undefined }, () => {});
  };
  backend.command = (asked, options, done) =>
    command(asked, options, (error, reply) => {
      stepped();
      done(error, reply);
    });
  backend.query = (asked, options, done) =>
    query(asked, options, (error, reply) => {
      stepped();
      done(error, reply);
    });
}
