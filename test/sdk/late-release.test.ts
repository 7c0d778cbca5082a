import { ServiceError } from '@remora/base';
import type { AcquireOptions } from 'remora';
import { expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

test('a release that comes late does not end what its owner has acquired since, where requests are sent once (W1)', async () => {
  const world = new World();
  const { backend } = world;
  const client = await world.client({ retry: { attempts: 1 }, requestTimeout: '5s' });
  const held = await world.until(client.lock('a').acquire({ token: 't' }));
  const apply = backend.command.bind(backend);
  const late: (() => void)[] = [];
  // Both the release and its first repetition in the background get lost, and arrive after all.
  backend.command = (command, options, done) => {
    if (command.type !== 'lock' || command.command.type !== 'release' || late.length === 2)
      return apply(command, options, done);
    late.push(() => apply(command, options, () => {}));
    done(new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost'), undefined);
    return () => {};
  };
  expect(await world.until(codeOf(held.release()))).toBe('UNKNOWN_OUTCOME');
  const again = await world.until(client.lock('a').acquire({ token: 't' }));
  for (const arrive of late) arrive();
  await world.run(100);
  expect([late.length, await world.until(again.check()), again.state]).toEqual([2, true, 'active']);
});

test('the lease of a lock that is released is ended, though its release and the first asking for that were lost (OL2)', async () => {
  const world = new World();
  const { backend } = world;
  const client = await world.client({ retry: { attempts: 1 } });
  const held = await world.until(client.lock('a').acquire({ ttl: '10m' }));
  const apply = backend.command.bind(backend);
  const lost: string[] = [];
  backend.command = (command, options, done) => {
    if (lost.length === 2) return apply(command, options, done);
    lost.push(command.type);
    done(new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost'), undefined);
    return () => {};
  };
  expect(await world.until(codeOf(held.release()))).toBe('UNKNOWN_OUTCOME');
  await world.run(5_000);
  expect([lost, backend.sessions]).toEqual([['lock', 'leaseRevoke'], 0]);
});

test.each([
  { name: 'by the holder', own: false },
  { name: 'as the session ends to which the lease of its own belongs', own: true },
])('a client that is closed while a lock is being given back, $name, costs nobody its lock-delay', async ({ own }) => {
  const world = new World();
  const { backend } = world;
  const [client, other] = [await world.client(), await world.client()];
  const session = await world.until(client.session());
  const options: AcquireOptions = own ? { lockDelay: '30s', ttl: '1m' } : { lockDelay: '30s' };
  const held = await world.until(session.lock('a').acquire(options));
  const apply = backend.command.bind(backend);
  backend.command = (command, sent, done) => {
    if (command.type !== 'lock' || command.command.type !== 'release') return apply(command, sent, done);
    const timer = world.clock.setTimer(300, () => apply(command, sent, done)); // Its range is slow.
    return () => timer.cancel();
  };
  const released = own ? 'ok' : codeOf(held.release());
  await world.until(client.close());
  expect([await released, backend.sessions]).toEqual(['ok', 0]);
  expect((await world.until(other.lock('a').acquire({ wait: '1s' }))).state).toBe('active');
});

test('what a holder says of its lock is not said again later, after it has said something else, where requests are sent once', async () => {
  const world = new World();
  const { backend } = world;
  const client = await world.client({ retry: { attempts: 1 }, requestTimeout: '5s' });
  const held = await world.until(client.lock('a').acquire());
  const apply = backend.command.bind(backend);
  let late: (() => void) | undefined;
  backend.command = (command, options, done) => {
    if (late !== undefined || command.type !== 'lock' || command.command.type !== 'setData')
      return apply(command, options, done);
    late = () => apply(command, options, () => {});
    done(new ServiceError('UNKNOWN_OUTCOME', 'the answer was lost'), undefined);
    return () => {};
  };
  const said = [held.setData('one'), held.setData('two')];
  expect(await world.until(Promise.all(said.map(codeOf)))).toEqual(['ok', 'ok']);
  late?.();
  await world.run(100);
  const state = await world.until(client.locks.show('a'));
  expect(Buffer.from(state?.holders[0]?.data ?? []).toString()).toBe('two');
});

test('who asks whether its lock is current, while the answer to its upgrade is on the way, asks no more than it must', async () => {
  const world = new World();
  const { backend } = world;
  const client = await world.client();
  const held = await world.until(client.rwLock('l').read());
  const apply = backend.command.bind(backend);
  backend.command = (command, options, done) =>
    apply(command, options, (...answer) => void world.clock.setTimer(1_000, () => done(...answer)));
  const ask = backend.query.bind(backend);
  let checks = 0;
  backend.query = (query, options, done) => {
    if (query.type === 'lock' && query.query.type === 'check') checks++;
    return ask(query, options, done);
  };
  const upgrade = held.upgrade();
  await world.run(100);
  expect(await world.until(held.check())).toBe(true);
  await world.until(upgrade);
  expect([checks, held.mode]).toEqual([2, 'exclusive']);
});
