// What is held while the client's thread is busy (background-renewer.ts, session.ts S6).
import { SeededRandom, silentLogger } from '@remora/base';
import type { LinkConnector } from '@remora/protocol';
import fc from 'fast-check';
import type { RemoraClient } from 'remora';
import { describe, expect, test } from 'vitest';
import {
  BackgroundRenewer,
  type BackgroundRenewerReport,
} from '../../packages/client/src/session/background-renewer.ts';
import { BackgroundRenewerClient } from '../../packages/client/src/session/background-renewer-client.ts';
import { Requester } from '../../packages/client/src/transport/requester.ts';
import { retryPolicy } from '../../packages/client/src/transport/retry.ts';
import { BusyThread } from '../support/busy-thread.ts';
import { World } from '../support/sdk-world.ts';

const ALIVE_INTERVAL_MS = 50;
const GATEWAYS = ['a:1', 'b:1', 'c:1'];

/** A client whose thread can be kept busy, with a background renewer. */
class Pair {
  readonly world = new World();
  readonly thread = new BusyThread(this.world.clock);
  /** Heartbeats of the background renewer. */
  beats = 0;
  readonly #reports: BackgroundRenewerReport[] = [];
  readonly #endpoints: readonly string[];

  constructor(endpoints = GATEWAYS) {
    this.#endpoints = endpoints;
  }

  async client(options: { readonly ttlMs: number; readonly blockMaxMs: number }): Promise<RemoraClient> {
    const { world, thread } = this;
    const backgroundRenewer = this.#backgroundRenewer(options.blockMaxMs);
    const send: BackgroundRenewer['receive'] = (request) =>
      world.clock.setImmediate(() => backgroundRenewer.receive(request));
    const alive = (): void => {
      send({ type: 'alive', atMs: thread.monotonicMs() });
      thread.setTimer(ALIVE_INTERVAL_MS, alive);
    };
    alive();
    const line = { send, receive: () => this.#reports.shift(), close() {} };
    return world.client({ sessionTtl: options.ttlMs, endpoints: this.#endpoints }, 1, {
      clock: thread,
      backgroundRenewer: new BackgroundRenewerClient(line),
    });
  }

  #backgroundRenewer(blockMaxMs: number): BackgroundRenewer {
    const { clock } = this.world;
    const connectLink: LinkConnector = ({ address, cluster }) => this.world.connect(address, cluster);
    const ports = { clock, random: new SeededRandom(77), logger: silentLogger, connectLink };
    const requester = new Requester(
      { ...ports, liveness: { hold() {}, release() {} } },
      { endpoints: this.#endpoints, requestBytesMax: 1 << 20, retry: retryPolicy() },
    );
    const attempt: Requester['attempt'] = (...request) => {
      this.beats++;
      return requester.attempt(...request);
    };
    return new BackgroundRenewer(
      { ports: requester.ports, gateways: requester.gateways, attempt },
      {
        blockMaxMs,
        report: (report) => this.#reports.push(report),
        learn: (told) => requester.discovery.learn(told),
        useToken: () => {},
      },
    );
  }

  /** Nothing of the client runs for so long; what is sent to it waits at its door. */
  async beBusy(ms: number): Promise<void> {
    const links = this.world.links.splice(0);
    this.thread.begin();
    for (const { pair } of links) pair.stall(true);
    await this.world.run(ms);
    for (const { pair } of links) pair.stall(false);
    this.world.links.push(...links);
  }
}

describe('a client whose thread is busy', () => {
  test('holds its locks all the same, and goes on by itself afterwards', async () => {
    const pair = new Pair();
    const client = await pair.client({ ttlMs: 1_500, blockMaxMs: 30_000 });
    const held = await pair.world.until(client.lock('l').acquire());
    await pair.beBusy(20_000);
    expect([held.state, held.signal.aborted]).toEqual(['active', false]);
    pair.thread.end();
    const { beats } = pair;
    await pair.world.run(10_000);
    expect([held.state, pair.world.backend.expired]).toEqual(['active', []]);
    // It steps back within an interval.
    expect(pair.beats - beats).toBeLessThanOrEqual(1);
  });

  test.each(GATEWAYS)('holds its locks all the same while %s alone is of any use', async (useful) => {
    const pair = new Pair();
    const { world } = pair;
    const client = await pair.client({ ttlMs: 1_500, blockMaxMs: 30_000 });
    const held = await world.until(client.lock('l').acquire());
    for (const address of GATEWAYS) if (address !== useful) world.isolated.add(address);
    await pair.beBusy(20_000);
    expect([held.state, held.signal.aborted]).toEqual(['active', false]);
    pair.thread.end();
    await world.run(10_000);
    expect([held.state, world.backend.expired]).toEqual(['active', []]);
  });

  test.each(['stands still', 'is cut off'])(
    'holds its locks all the same when the one gateway that it was given %s',
    async (how) => {
      const pair = new Pair(['a:1']);
      const { world } = pair;
      world.advertised = ['b:1', 'c:1'];
      const client = await pair.client({ ttlMs: 3_000, blockMaxMs: 30_000 });
      const held = await world.until(client.lock('l').acquire());
      if (how === 'is cut off') world.isolated.add('a:1');
      else world.freeze('a:1');
      await pair.beBusy(20_000);
      expect([held.state, held.signal.aborted, world.backend.expired]).toEqual(['active', false, []]);
    },
  );

  test('holds its locks all the same while every answer is late', async () => {
    const pair = new Pair();
    const { world } = pair;
    const client = await pair.client({ ttlMs: 1_500, blockMaxMs: 30_000 });
    const held = await world.until(client.lock('l').acquire());
    const ask = world.backend.query.bind(world.backend);
    world.backend.query = (query, options, done) => {
      const timer = world.clock.setTimer(400, () => ask(query, options, done));
      return () => timer.cancel();
    };
    await pair.beBusy(20_000);
    expect([held.state, held.signal.aborted]).toEqual(['active', false]);
  });

  test('holds a lock no longer than it may be held', async () => {
    const pair = new Pair();
    const client = await pair.client({ ttlMs: 1_500, blockMaxMs: 30_000 });
    const held = await pair.world.until(client.lock('l').acquire({ ttl: '1500ms', maxHold: '5s' }));
    await pair.beBusy(4_000);
    expect(pair.world.backend.expired).toEqual([]);
    await pair.beBusy(6_000);
    expect(pair.world.backend.expired).toHaveLength(1);
    pair.thread.end();
    await pair.world.run(100);
    expect([held.state, held.signal.aborted]).toEqual(['lost', true]);
  });

  test('sends no heartbeats in the background as long as it sends its own heartbeats', async () => {
    const pair = new Pair();
    const client = await pair.client({ ttlMs: 900, blockMaxMs: 30_000 });
    await pair.world.until(client.lock('l').acquire());
    await pair.world.run(10_000);
    expect(pair.beats).toBe(0);
  });

  test('that hangs for good holds up others for so long as it may be busy and a TTL, and knows it is lost', async () => {
    const pair = new Pair();
    const [ttlMs, blockMaxMs] = [1_500, 4_000];
    const client = await pair.client({ ttlMs, blockMaxMs });
    const held = await pair.world.until(client.lock('l').acquire());
    const other = await pair.world.client();
    const startMs = pair.world.clock.monotonicMs();
    const waiting = other.lock('l').acquire();
    await pair.world.run(20);
    const busy = pair.beBusy(20_000);
    await Promise.race([waiting, busy]);
    const waitedMs = pair.world.clock.monotonicMs() - startMs;
    expect(waitedMs).toBeGreaterThan(blockMaxMs);
    expect(waitedMs).toBeLessThan(blockMaxMs + ttlMs + 200);
    await busy;
    expect([held.state, held.signal.aborted]).toEqual(['lost', true]);
  });

  test('whose session is over is told so, and nobody renews that any more', async () => {
    const pair = new Pair();
    const client = await pair.client({ ttlMs: 900, blockMaxMs: 30_000 });
    const session = await pair.world.until(client.session());
    await pair.world.until(session.close());
    await pair.beBusy(5_000);
    expect(pair.beats).toBe(0);
  });

  test('never takes for its own what the cluster has given away, whoever was cut off meanwhile', async () => {
    const run = fc.record({
      ttlMs: fc.integer({ min: 300, max: 3_000 }),
      blockMaxMs: fc.integer({ min: 0, max: 6_000 }),
      busyMs: fc.integer({ min: 0, max: 9_000 }),
      cutMs: fc.option(fc.integer({ min: 0, max: 9_000 }), { nil: undefined }),
    });
    let outlasted = 0;
    await fc.assert(
      fc.asyncProperty(run, async ({ ttlMs, blockMaxMs, busyMs, cutMs }) => {
        const pair = new Pair();
        const { world } = pair;
        const client = await pair.client({ ttlMs, blockMaxMs });
        const held = await world.until(client.lock('l').acquire());
        await world.run(ttlMs);
        if (cutMs !== undefined) {
          world.clock.setTimer(cutMs, () => {
            for (const address of GATEWAYS) world.isolated.add(address);
          });
        }
        await pair.beBusy(busyMs);
        const isHeld = held.state !== 'lost' && !held.signal.aborted;
        if (isHeld) expect(world.backend.expired).toEqual([]);
        if (cutMs === undefined && busyMs < blockMaxMs - ALIVE_INTERVAL_MS) expect(isHeld).toBe(true);
        if (isHeld && busyMs > ttlMs) outlasted++;
      }),
      // What is drawn may outlast nothing.
      { numRuns: 40, examples: [[{ ttlMs: 300, blockMaxMs: 6_000, busyMs: 4_000, cutMs: undefined }]] },
    );
    expect(outlasted).toBeGreaterThan(0);
  });
});
