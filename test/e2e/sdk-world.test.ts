import { type Leader, type LeadershipHandle, LockStates, type RevocationRequest } from 'remora';
import { afterEach, describe, expect, test } from 'vitest';
import { plain } from '../support/plain.ts';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

let world: World;
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
afterEach(() => {
  expect(unhandled.splice(0)).toEqual([]);
});

describe('requests', () => {
  test('keys are written, read, compared and deleted', async () => {
    world = new World();
    const { kv } = await world.client();
    expect((await world.until(kv.put('k/1', 'one'))).prev).toBeUndefined();
    await world.until(kv.put('k/2', Buffer.from('two')));
    expect((await world.until(kv.get('k/1')))?.value.toString()).toBe('one');
    expect((await world.until(kv.range({ prefix: 'k/' }))).kvs.map(({ key }) => key.toString())).toEqual([
      'k/1',
      'k/2',
    ]);
    const txn = await world.until(
      kv.txn({
        compare: [{ key: 'k/1', target: 'version', is: '=', than: 1 }],
        success: [{ put: 'k/1', value: 'uno', prevKv: true }, { get: 'k/2' }],
        failure: [{ delete: { prefix: 'k/' } }],
      }),
    );
    expect(txn.succeeded).toBe(true);
    expect(txn.results.map((result) => result.type)).toEqual(['put', 'get']);
    expect((await world.until(kv.delete({ prefix: 'k/' }))).deleted).toBe(2);
    expect(await world.until(kv.get('k/1'))).toBeUndefined();
    expect(world.held).toBe(world.backend.sessions);
  });

  test('a command whose answer was lost is repeated at another gateway under the same id and deadline, and applied once', async () => {
    world = new World();
    const { kv } = await world.client();
    await world.until(kv.get('x'));
    world.backend.onApplied = (command) => {
      if (command.type !== 'kv') return;
      world.backend.onApplied = () => {};
      world.sever();
    };
    await world.until(kv.put('k', 'v'));
    const puts = world.backend.seen.filter(({ command }) => command.type === 'kv');
    expect(puts.length).toBe(2);
    expect(puts[0]?.requestId).toBe(puts[1]?.requestId);
    expect(puts[0]?.deadlineMs).toBeGreaterThan(1_000_000);
    expect(puts[0]?.deadlineMs).toBe(puts[1]?.deadlineMs);
    expect((await world.until(kv.get('k')))?.version).toBe(1);
  });

  test('a command that was sent and never answered is UNKNOWN_OUTCOME; one that was never sent is not', async () => {
    world = new World();
    const { kv } = await world.client();
    await world.until(kv.put('x', 'y'));
    world.backend.onApplied = () => {
      for (const address of GATEWAYS) world.down.add(address);
      world.sever();
    };
    expect(await world.until(codeOf(kv.put('k', 'v', { timeout: '2s' })))).toBe('UNKNOWN_OUTCOME');
    expect(await world.until(codeOf(kv.put('k', 'v', { timeout: '2s' })))).toMatch(/UNAVAILABLE|DEADLINE_EXCEEDED/);
    expect(await world.until(codeOf(kv.get('k', { timeout: '1s' })))).toMatch(/UNAVAILABLE|DEADLINE_EXCEEDED/);
    expect(world.held).toBe(world.backend.sessions);
  });

  test('without any gateway, connect fails within its time', async () => {
    world = new World();
    for (const address of GATEWAYS) world.down.add(address);
    expect(await codeOf(world.client({ connectTimeout: '1s' }))).toBe('UNAVAILABLE');
    expect(world.clock.monotonicMs()).toBeLessThan(1_500);
  });

  test('a first command ends by its own time when the cluster is gone', async () => {
    world = new World();
    const { kv } = await world.client();
    world.stall(true);
    for (const address of GATEWAYS) world.down.add(address);
    const startMs = world.clock.monotonicMs();
    expect(await world.until(codeOf(kv.put('k', 'v', { timeout: '2s' })))).toBe('DEADLINE_EXCEEDED');
    expect(world.clock.monotonicMs() - startMs).toBeLessThan(3_500);
    expect(world.backend.seen).toEqual([]);
  });

  test('a bad request is refused at the gateway', async () => {
    world = new World();
    const client = await world.client();
    expect(await world.until(codeOf(client.kv.put('', 'v')))).toBe('EMPTY_KEY');
    expect(await world.until(codeOf(client.kv.put('k', Buffer.alloc(1_600_000))))).toBe('REQUEST_TOO_LARGE');
    expect(await world.until(codeOf(client.lock(Buffer.alloc(2_000)).acquire()))).toBe('INVALID_ARGUMENT');
    const success = [
      { put: 'k', value: '1' },
      { put: 'k', value: '2' },
    ];
    expect(await world.until(codeOf(client.kv.txn({ success })))).toBe('DUPLICATE_KEY');
    const many = Array.from({ length: 129 }, (_, i) => ({ put: `k${i}`, value: '' }));
    expect(await world.until(codeOf(client.kv.txn({ success: many })))).toBe('TOO_MANY_OPERATIONS');
  });

  test('an aborted request ends at once', async () => {
    world = new World();
    const { kv } = await world.client();
    world.stall(true);
    const controller = new AbortController();
    const code = codeOf(kv.put('k', 'v', { signal: controller.signal }));
    controller.abort();
    expect(await code).toBe('CANCELED');
  });
});

describe('locks', () => {
  test('are granted in order, with growing versions', async () => {
    world = new World();
    const clients = [await world.client(), await world.client(), await world.client()];
    const order: number[] = [];
    const versions: number[] = [];
    const holders = clients.map(async (client, i) => {
      const held = await client.lock('l').acquire();
      order.push(i);
      versions.push(held.version);
      await held.release();
    });
    await world.until(Promise.all(holders));
    expect(order.length).toBe(3);
    expect(versions).toEqual([...versions].sort((a, b) => a - b));
    expect(new Set(versions).size).toBe(3);
    expect(await world.until(clients[0]?.locks.show('l') ?? Promise.reject())).toBeUndefined();
    expect(world.held).toBe(world.backend.sessions);
  });

  test('tryAcquire is undefined when the lock is taken, and acquire without wait is LOCK_BUSY', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    expect(await world.until(second.lock('l').tryAcquire())).toBeUndefined();
    expect(await world.until(codeOf(second.lock('l').acquire({ wait: 0 })))).toBe('LOCK_BUSY');
    await world.until(held.release());
    expect(held.state).toBe('released');
    expect((await world.until(second.lock('l').tryAcquire()))?.state).toBe('active');
  });

  test('the holder enters again through its handle, and leaves level by level', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    await world.until(held.acquire());
    expect(held.depth).toBe(2);
    await world.until(held.release());
    expect([held.state, await world.until(second.lock('l').tryAcquire())]).toEqual(['active', undefined]);
    await world.until(held.release());
    expect(await world.until(second.lock('l').tryAcquire())).toBeDefined();
  });

  test.each(['times out', 'is aborted'])('an acquire that %s leaves nothing behind', async (how) => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    const controller = new AbortController();
    const options = how === 'times out' ? { wait: '100ms' as const } : { signal: controller.signal };
    const code = codeOf(second.lock('l').acquire(options));
    await world.run(60);
    expect((await world.until(first.locks.show('l')))?.waiterCount).toBe(1);
    controller.abort(new Error('enough'));
    expect(await world.until(code)).toBe(how === 'times out' ? 'LOCK_TIMEOUT' : 'CANCELED');
    await world.run(20);
    expect((await world.until(first.locks.show('l')))?.waiterCount).toBe(0);
    await world.until(held.release());
    expect(await world.until(first.locks.show('l'))).toBeUndefined();
  });

  test('a grant that comes after the time to wait is given back', async () => {
    world = new World();
    const client = await world.client();
    await world.until(client.lock('other').acquire());
    const code = codeOf(client.lock('l').acquire({ wait: '200ms' }));
    world.backend.onApplied = ({ type }) => {
      if (type === 'lock') world.stall(true);
    };
    expect(await world.until(code)).toBe('LOCK_TIMEOUT');
    world.backend.onApplied = () => {};
    const acquires = world.backend.seen.filter(
      ({ command }) => command.type === 'lock' && command.command.type === 'acquire',
    );
    expect(acquires.length).toBe(2);
    world.stall(false);
    await world.run(50);
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test('a wait outlives the gateway that it began at, and keeps its place', async () => {
    world = new World();
    const [first, second, third] = [await world.client(), await world.client(), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    const waiting = second.lock('l').acquire();
    await world.run(50);
    const after = third.lock('l').acquire();
    await world.run(50);
    world.sever();
    await world.run(500);
    expect((await world.until(first.locks.show('l')))?.waiterCount).toBe(2);
    await world.until(held.release());
    const next = await world.until(waiting);
    await world.until(next.release());
    expect((await world.until(after)).version).toBeGreaterThan(next.version);
  });

  test('a forced release is heard by who looks at the signal, and nobody else asks for it', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const watched = await world.until(first.lock('watched').acquire());
    const { signal } = watched;
    const unwatched = await world.until(first.lock('unwatched').acquire());
    const brief = await world.until(first.lock('brief').acquire());
    expect(brief.signal.aborted).toBe(false);
    await world.until(brief.release());
    await world.run(20_000);
    // It was asked for again meanwhile.
    expect([world.backend.grantQuestions, signal.aborted]).toEqual([2, false]);
    await world.until(second.locks.forceRelease('unwatched'));
    await world.until(second.locks.forceRelease('watched'));
    await world.run(20);
    expect([signal.aborted, signal.reason.code, watched.state]).toEqual([true, 'LOCK_NOT_HELD', 'lost']);
    expect(unwatched.state).toBe('active');
    await world.until(first.close());
    await world.until(second.close());
    await world.run(61_000);
    expect([world.backend.grantQuestions, world.clock.pendingTimers]).toEqual([2, 0]);
  });

  test('a forced release is heard through whichever gateway is left', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    const { signal } = held;
    await world.run(1_000);
    const used = world.links[0]?.address ?? '';
    world.down.add(used);
    world.sever();
    await world.until(second.locks.forceRelease('l'));
    await world.run(3_000);
    expect(signal.aborted).toBe(true);
  });

  test('of very many locks some are watched at a time, and the others as those are released', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const held = await world.until(Promise.all(Array.from({ length: 1_025 }, (_, i) => first.lock(`l${i}`).acquire())));
    const signals = held.map(({ signal }) => signal);
    await world.run(1_000);
    expect(world.backend.grantQuestions).toBe(1_024);
    await world.until(held[0]?.release() ?? Promise.reject());
    await world.run(1_200);
    expect(world.backend.grantQuestions).toBe(1_025);
    await world.until(second.locks.forceRelease('l1024'));
    await world.run(20);
    expect(signals.map(({ aborted }, i) => (aborted ? i : -1)).filter((i) => i >= 0)).toEqual([1_024]);
  });

  test('force release shows in check, which aborts the signal', async () => {
    world = new World();
    const [first, second] = [await world.client(), await world.client()];
    const held = await world.until(first.lock('l').acquire());
    expect(await world.until(held.check())).toBe(true);
    await world.until(second.locks.forceRelease('l'));
    const { signal } = held;
    expect(await world.until(held.check())).toBe(false);
    expect([signal.aborted, held.state]).toEqual([true, 'lost']);
    expect(await world.until(codeOf(held[Symbol.asyncDispose]()))).toBe('ok');
  });
});

describe('sessions', () => {
  test('a client that is cut off loses its locks before the server ends its session', async () => {
    world = new World();
    const client = await world.client({ sessionTtl: '9s' });
    const held = await world.until(client.lock('l').acquire());
    const { signal } = held;
    let lostMs = 0;
    signal.addEventListener('abort', () => {
      lostMs = world.clock.monotonicMs();
    });
    await world.run(4_000);
    for (const address of GATEWAYS) world.down.add(address);
    world.sever();
    await world.run(3_500);
    expect([held.state, signal.aborted]).toEqual(['suspended', false]);
    await world.run(10_000);
    expect(held.state).toBe('lost');
    expect(signal.reason).toMatchObject({ code: 'SESSION_EXPIRED' });
    const serverMs = world.backend.expired[0]?.atMs ?? 0;
    expect(lostMs).toBeGreaterThan(0);
    expect(serverMs - lostMs).toBeGreaterThanOrEqual(9_000 * 0.1);
  });

  test('goes on at another gateway when its own is gone', async () => {
    world = new World();
    const client = await world.client({ sessionTtl: '3s' });
    const held = await world.until(client.lock('l').acquire());
    for (let i = 0; i < 5; i++) {
      await world.run(1_000);
      world.down.clear();
      world.down.add(world.links[0]?.address ?? '');
      world.sever();
      await world.run(2_000);
      expect(held.state).toBe('active');
    }
    expect(world.backend.expired).toEqual([]);
  });

  test('a machine that was suspended finds its locks lost at the first look', async () => {
    world = new World();
    const client = await world.client({ sessionTtl: '5s' });
    const held = await world.until(client.lock('l').acquire());
    world.clock.jumpWall(60_000);
    expect(held.signal.aborted).toBe(true);
    expect(() => held.throwIfLost()).toThrow(/suspended/);
  });

  test('after a loss, the next acquire has a new session', async () => {
    world = new World();
    const client = await world.client({ sessionTtl: '2s' });
    const lost = await world.until(client.lock('l').acquire());
    world.clock.jumpWall(60_000);
    expect(lost.state).toBe('lost');
    await world.run(2_500);
    const again = await world.until(client.lock('l').acquire());
    expect([again.state, lost.state]).toEqual(['active', 'lost']);
    expect(again.version).toBeGreaterThan(lost.version);
  });

  test('close releases everything at once and leaves no timer', async () => {
    world = new World();
    const [first, second] = [await world.client({ sessionTtl: '60s' }), await world.client()];
    await world.until(first.lock('a').acquire());
    const waiting = second.lock('a').acquire();
    await world.run(100);
    await world.until(first.close());
    expect((await world.until(waiting, 1_000)).state).toBe('active');
    await world.until(second.close());
    await world.run(1_000);
    expect([world.backend.sessions, world.clock.pendingTimers, world.held]).toEqual([0, 0, 0]);
    expect(await world.until(codeOf(first.lock('a').acquire()))).toBe('CANCELED');
  });

  test('sessions of one client are apart', async () => {
    world = new World();
    const client = await world.client();
    const session = await world.until(client.session({ ttl: '5s' }));
    const inSession = await world.until(session.lock('l').acquire());
    expect(await world.until(client.lock('l').tryAcquire())).toBeUndefined();
    const { signal } = session;
    await world.until(session.close());
    expect([inSession.state, signal.aborted, session.state]).toEqual(['lost', true, 'closed']);
    expect(await world.until(client.lock('l').tryAcquire())).toBeDefined();
  });
});

describe('events of locks', () => {
  test('begin with how the lock is, and say what happens to it', async () => {
    world = new World();
    const [client, other] = [await world.client(), await world.client()];
    const lock = client.lock('l');
    const seen: string[] = [];
    const events = lock.events();
    const reading = (async () => {
      for await (const event of events) seen.push(event.type);
    })();
    await world.run(20);
    const held = await world.until(lock.acquire());
    const waiting = other.lock('l').acquire({ wait: 500 });
    await world.run(20);
    await world.until(held.release());
    const second = await world.until(waiting);
    await world.until(client.locks.forceRelease('l'));
    expect(second.version).toBeGreaterThan(held.version);
    await world.run(20);
    events.close();
    await world.until(reading);
    expect(seen).toEqual(['state', 'acquired', 'queued', 'released', 'acquired', 'forced']);
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  test('begin anew at another gateway when their own is gone', async () => {
    world = new World();
    const client = await world.client();
    const states = new LockStates();
    const types: string[] = [];
    const events = client.locks.events({ prefix: 'a/' });
    const reading = (async () => {
      for await (const event of events) {
        states.apply(event);
        types.push(event.type);
      }
    })();
    const gone = await world.until(client.lock('a/1').acquire());
    await world.until(client.lock('b/1').acquire());
    await world.run(20);
    expect(states.values().map(({ lock }) => String(lock.name))).toEqual(['a/1']);
    world.sever();
    await world.until(gone.release());
    const kept = await world.until(client.lock('a/2').acquire());
    await world.run(3_000);
    expect(types.filter((type) => type === 'begin').length).toBeGreaterThan(1);
    expect(plain(states.values())).toEqual(plain([await world.until(client.locks.show('a/2'))]));
    await world.until(kept.release());
    await world.run(20);
    expect(states.values()).toEqual([]);
    await world.until(client.close());
    await world.until(reading);
    expect(world.held).toBe(world.backend.sessions);
  });
});

describe('requests to let go', () => {
  test('a holder is told, and agrees by releasing; what it does in the end is what the asker hears', async () => {
    world = new World();
    const [holder, asker] = [await world.client(), await world.client()];
    const requests: RevocationRequest[] = [];
    const held = await world.until(
      holder.lock('l').acquire({
        onRevoke: async (request) => {
          requests.push(request);
          if (requests.length === 2) await held.release();
        },
      }),
    );
    const first = asker.lock('l').revoke({ by: 'ops', reason: 'host goes down', wait: 500 });
    expect(await world.until(first)).toBe('declined');
    expect(requests).toMatchObject([{ by: 'ops', reason: 'host goes down' }]);
    expect(await world.until(held.check())).toBe(true);
    expect(await world.until(asker.locks.revoke('l', { wait: '10s' }))).toBe('released');
    expect([requests.length, held.state]).toEqual([2, 'released']);
    expect(await world.until(asker.lock('l').revoke())).toBe('free');
    await world.until(Promise.all([holder.close(), asker.close()]));
    expect(world.held).toBe(world.backend.sessions);
  });

  test('who is asked hears of it once, also when it listens later, and not at all after it has let go', async () => {
    world = new World();
    const [holder, asker] = [await world.client(), await world.client()];
    const held = await world.until(holder.lock('l').acquire());
    const controller = new AbortController();
    const asking = codeOf(asker.lock('l').revoke({ wait: '1m', signal: controller.signal }));
    await world.run(200);
    let heard = 0;
    expect(held.signal.aborted).toBe(false);
    const forget = held.onRevoke(() => {
      heard++;
      throw new Error('of the listener');
    });
    await world.run(1_000);
    held.onRevoke(() => {});
    await world.run(20_000);
    expect(heard).toBe(1);
    expect(world.backend.grantQuestions).toBeLessThan(10);
    controller.abort();
    expect(await world.until(asking)).toBe('CANCELED');
    forget();
    await world.until(held.release());
    expect(await world.until(asker.locks.show('l'))).toBeUndefined();
    expect(await codeOf(world.until(asker.lock('l').revoke({ reason: 'x'.repeat(257) })))).toBe('INVALID_ARGUMENT');
    await world.until(Promise.all([holder.close(), asker.close()]));
  });
});

describe('elections', () => {
  const text = (leader: Leader | undefined): string => (leader === undefined ? '-' : String(leader.value));

  test('whoever observes is told of each leader and each proclamation, from the present one on', async () => {
    world = new World();
    const [first, second, third] = [await world.client(), await world.client(), await world.client()];
    const election = first.election('e');
    const told: (Leader | undefined)[] = [];
    const leaders = election.observe();
    const observing = (async () => {
      for await (const leader of leaders) told.push(leader);
    })();
    await world.run(20);
    const one = await world.until(election.campaign({ value: 'a' }));
    const standing = second.election('e').campaign({ value: 'b' });
    await world.run(20);
    await world.until(one.proclaim('a2'));
    expect(text(await world.until(third.election('e').leader()))).toBe('a2');
    await world.until(one.release());
    const two = await world.until(standing);
    expect(two.version).toBeGreaterThan(one.version);
    await world.until(second.close());
    await world.run(20);
    expect(told.map(text)).toEqual(['-', 'a', 'a2', 'b', '-']);
    expect(told.map((leader) => leader?.version)).toEqual([
      undefined,
      one.version,
      one.version,
      two.version,
      undefined,
    ]);
    expect(await codeOf(world.until(two.proclaim('c')))).toBe('CANCELED');
    leaders.close();
    await world.until(observing);
  });

  test('a leadership that was taken away is stood for again, with what the candidate has to say', async () => {
    world = new World();
    const [dead, heir, other] = [await world.client(), await world.client(), await world.client()];
    const session = await world.until(dead.session({ ttl: 60_000 }));
    const { handle } = await world.until(session.election('e').campaign({ value: 'a' }));
    const standing = other.election('e').campaign({ value: 'b' });
    await world.until(session.orphan());
    await world.until(other.locks.forceRelease('e'));
    const led = await world.until(standing);
    const resumed = heir.election('e').resume(handle, { value: 'a again' });
    await world.run(50);
    expect(text(await world.until(heir.election('e').leader()))).toBe('b');
    await world.until(led.release());
    await world.until(resumed);
    expect(text(await world.until(heir.election('e').leader()))).toBe('a again');
    await world.until(Promise.all([dead.close(), heir.close(), other.close()]));
  });

  test('a leadership goes on in another process, under its version, and only as long as its session lives', async () => {
    world = new World();
    const [dead, heir, late] = [await world.client(), await world.client(), await world.client()];
    const session = await world.until(dead.session({ ttl: 3_000 }));
    const before = await world.until(session.election('e').campaign({ value: 'a' }));
    const handle = JSON.parse(JSON.stringify(before.handle)) as LeadershipHandle;
    await world.until(session.orphan());
    await world.run(1_000);
    const after = await world.until(heir.election('e').resume(handle));
    expect([after.version, text(await world.until(heir.election('e').leader()))]).toEqual([before.version, 'a']);
    await world.run(20_000);
    expect(await world.until(after.check())).toBe(true);
    await world.until(after.proclaim('b'));
    await world.until(after.release());
    expect(await world.until(heir.election('e').leader())).toBeUndefined();
    await world.until(heir.close());
    expect(await codeOf(world.until(late.election('e').resume(handle)))).toBe('SESSION_EXPIRED');
    await world.until(Promise.all([late.close(), dead.close()]));
  });
});

describe('watches', () => {
  test('deliver every change once and in order, over broken links', async () => {
    world = new World();
    const { kv } = await world.client();
    const watch = kv.watch({ prefix: 'w/' });
    await world.run(50);
    const got: string[] = [];
    const reading = (async () => {
      for await (const event of watch) {
        got.push(event.kv.value.toString());
        if (got.length === 60) break;
      }
    })();
    for (let i = 0; i < 60; i++) {
      await world.until(kv.put(`w/${i % 7}`, String(i)));
      if (i % 11 === 5) world.sever();
    }
    await world.until(reading);
    expect(got).toEqual(Array.from({ length: 60 }, (_, i) => String(i)));
    expect(world.held).toBe(world.backend.sessions);
  });

  test('a consumer that is far behind is caught up from history', async () => {
    world = new World();
    const { kv } = await world.client();
    const watch = kv.watch({ prefix: 'w/' }, { startRevision: 1 });
    const total = 12_000;
    for (let done = 0; done < total; done += 100) {
      const success = Array.from({ length: 100 }, (_, i) => ({ put: `w/${i}`, value: String(done + i) }));
      await world.until(kv.txn({ success }));
    }
    await world.run(100);
    for (let i = 0; i < total; i++) {
      const { value } = await world.until(watch.next());
      expect(value?.kv.value.toString()).toBe(String(i));
    }
    watch.close();
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  test('a start that is compacted away is COMPACTED', async () => {
    world = new World();
    const { kv } = await world.client();
    for (let i = 0; i < 10; i++) await world.until(kv.put('k', String(i)));
    await world.until(kv.compact(8));
    const watch = kv.watch('k', { startRevision: 2 });
    const error = await world.until(watch.next().catch((reason: unknown) => reason));
    expect(error).toMatchObject({ code: 'COMPACTED', details: { compactRevision: 8 } });
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  test('end when the client closes', async () => {
    world = new World();
    const client = await world.client();
    const watch = client.kv.watch('k');
    const next = watch.next();
    await world.run(20);
    await world.until(client.close());
    expect(await world.until(next)).toEqual({ done: true, value: undefined });
  });
});
