import type { ClientOptions, ExitHooks, HeldLock, RemoraClient, RenewsInBackground } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

let world: World;
let hooks: Set<() => Promise<void>>;
const exit: ExitHooks = {
  beforeExit(fn) {
    hooks.add(fn);
    return () => hooks.delete(fn);
  },
};
beforeEach(() => {
  world = new World();
  hooks = new Set();
});

const IMPOSSIBLE: readonly { readonly name: string; readonly options: Partial<ClientOptions> }[] = [
  { name: 'no endpoints', options: { endpoints: [] } },
  { name: 'a time-out that is none', options: { requestTimeout: Number.NaN } },
  { name: 'no pause between attempts', options: { retry: { initial: 0 } } },
  { name: 'no time to connect', options: { connectTimeout: -1 } },
];

test.each(IMPOSSIBLE)(
  'a client that does not come about, for $name, leaves no background renewer behind',
  async ({ options }) => {
    let closed = 0;
    const backgroundRenewer: RenewsInBackground = {
      renew: () => expect.unreachable(),
      learn: () => {},
      useToken: () => {},
      close: () => closed++,
    };
    expect(await codeOf(world.client(options, 1, { backgroundRenewer }))).toBe('INVALID_ARGUMENT');
    expect(closed).toBe(1);
  },
);

describe('when the process ends', () => {
  test('a client releases what it holds, and takes nothing any more', async () => {
    const client = await world.client({}, 1, { exit });
    const held = await world.until(client.lock('a').acquire());
    const own = await world.until(client.lock('b').acquire({ ttl: '10m' }));
    await world.until(Promise.all([...hooks].map((hook) => hook())));
    expect([held.state, own.state, world.backend.sessions]).toEqual(['lost', 'lost', 0]);
    expect(await world.until(codeOf(client.lock('a').acquire()))).toBe('CANCELED');
  });

  test('a client that holds nothing, is closed, or is told not to, does nothing', async () => {
    const client = await world.client({}, 1, { exit });
    await world.until(client.kv.put('k', 'v'));
    expect(hooks.size).toBe(0);
    await world.until(client.lock('a').acquire());
    await world.until(client.session());
    expect(hooks.size).toBe(1);
    await world.until(client.close());
    expect(hooks.size).toBe(0);
    const other = await world.client({ releaseOnExit: false }, 1, { exit });
    await world.until(other.lock('a').acquire());
    expect(hooks.size).toBe(0);
  });
});

/** A client that is cut off, as if its process had ended, once `die` is called. */
async function mortalClient(): Promise<{ client: RemoraClient; die: () => void; isDead: () => boolean }> {
  let isDead = false;
  const connect = world.connect.bind(world);
  world.connect = (address) => {
    const link = connect(address);
    const send = link.send.bind(link);
    link.send = (frame) => isDead || send(frame);
    return link;
  };
  const client = await world.client({}, 1, { exit });
  const die = (): void => {
    isDead = true;
  };
  return { client, die, isDead: () => isDead };
}

test.each(['its signal', 'the signal of a lock with a lease of its own', 'its waiting'])(
  'what gives the locks back is on its way when %s tells of that, which may end the process (S9)',
  async (what) => {
    const other = await world.client();
    await world.until(other.lock('c').acquire());
    const { client, die, isDead } = await mortalClient();
    const held = await world.until(client.lock('a').acquire());
    const own = await world.until(client.lock('b').acquire({ ttl: '10m' }));
    const waiting = client.lock('c').acquire();
    await world.run(100);
    waiting.catch(what === 'its waiting' ? die : () => {});
    if (what !== 'its waiting') (what === 'its signal' ? held : own).signal.addEventListener('abort', die);
    for (const hook of hooks) void hook();
    await world.run(100);
    expect([isDead(), world.backend.sessions]).toEqual([true, 1]);
    expect((await world.until(other.locks.show('c')))?.waiterCount).toBe(0);
  },
);

test.each(['plain', 'first', 'second', 'own'])(
  'so is what gives back locks with a delay, whichever of several locks tells first: %s',
  async (first) => {
    const other = await world.client();
    const { client, die, isDead } = await mortalClient();
    const session = await world.until(client.session());
    const held = new Map<string, HeldLock>();
    held.set('plain', await world.until(client.lock('plain').acquire()));
    held.set('first', await world.until(session.lock('first').acquire({ lockDelay: '60s' })));
    held.set('second', await world.until(session.lock('second').acquire({ lockDelay: '60s' })));
    held.set('own', await world.until(session.lock('own').acquire({ ttl: '10m', lockDelay: '60s' })));
    held.get(first)?.signal.addEventListener('abort', die);
    for (const hook of hooks) void hook();
    await world.run(100);
    expect(isDead()).toBe(true);
    for (const name of held.keys()) expect(await world.until(other.locks.show(name))).toBeUndefined();
  },
);

test('so is what gives back the only lock, with a delay', async () => {
  const other = await world.client();
  const { client, die, isDead } = await mortalClient();
  const held = await world.until(client.lock('only').acquire({ lockDelay: '60s' }));
  held.signal.addEventListener('abort', die);
  for (const hook of hooks) void hook();
  for (let turn = 0; turn < 20; turn++) await Promise.resolve(); // before the end of the loop's turn, at which frames leave
  expect(isDead()).toBe(true);
  await world.run(100);
  expect(await world.until(other.locks.show('only'))).toBeUndefined();
});
