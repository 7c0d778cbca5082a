import { nodeClock, nodeRandom, ServiceError, silentLogger } from '@remora/base';
import {
  type Backend,
  type BackendDone,
  ClientServer,
  etcdApi,
  etcdServices,
  type RequestOptions,
  type WatchControl,
  type WatchListener,
  type WatchOptions,
} from '@remora/gateway';
import type { Query, QueryResult } from '@remora/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALONE_NODE } from '../../packages/gateway/test/support/alone-node.ts';
import { NO_AUTHENTICATION } from '../../packages/gateway/test/support/no-authentication.ts';
import { leftByStop, recipeScenarios } from './etcd-recipes.ts';
import { MemoryBackend } from './memory-backend.ts';

/** Loses every other of the reads that look for who stands ahead, and of the watches that wait for it to go. */
class FalteringBackend extends MemoryBackend {
  lost = 0;
  #reads = 0;
  #watches = 0;

  override query(query: Query, options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    const looksAhead = query.type === 'range' && query.op.sortTarget === 'create' && query.op.sortOrder === 'descend';
    if (!looksAhead || ++this.#reads % 2 === 0) return super.query(query, options, done);
    this.lost++;
    done(new ServiceError('UNAVAILABLE', 'no leader'), undefined);
    return () => {};
  }

  override watch(options: WatchOptions, listener: WatchListener): WatchControl {
    if (++this.#watches % 2 === 0) return super.watch(options, listener);
    this.lost++;
    listener.onEnd(new ServiceError('NOT_LEADER', 'no longer leads'), 0);
    return { cancel() {}, progress() {}, pause() {}, resume() {} };
  }
}

const clock = nodeClock();

async function served(backend: Backend): Promise<{ readonly server: ClientServer; readonly address: string }> {
  const server = new ClientServer({ identification: NO_AUTHENTICATION, clock, logger: silentLogger });
  const deps = { backend, clock, random: nodeRandom(), scheme: 'http', node: ALONE_NODE } as const;
  server.add(
    ...etcdServices(
      etcdApi(deps, () => server.guard.abandoned),
      server.guard,
    ),
  );
  return { server, address: `127.0.0.1:${await server.start('127.0.0.1', 0)}` };
}

describe("etcd's lock and election services at the gateway alone", () => {
  const faltering = new FalteringBackend(clock);
  const backends = { 'that answers': new MemoryBackend(clock), 'that falters': faltering };

  for (const [what, backend] of Object.entries(backends)) {
    describe(`over a backend ${what}`, () => {
      let gateway: Awaited<ReturnType<typeof served>> | undefined;
      beforeAll(async () => {
        gateway = await served(backend);
      });
      afterAll(() => gateway?.server.stop(100));

      for (const { name, run } of recipeScenarios) it.concurrent(name, () => run(gateway?.address ?? ''));
    });
  }

  it('who waits when the gateway stops leaves the line, and is told so', async () => {
    const backend = new MemoryBackend(clock);
    const [gateway, other] = [await served(backend), await served(backend)];
    try {
      await leftByStop(gateway.address, other.address, () => gateway.server.stop(3_600_000));
    } finally {
      await other.server.stop(100);
    }
  });

  it('has really faltered', () => {
    expect(faltering.lost).toBeGreaterThan(10);
  });
});
