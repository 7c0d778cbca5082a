import { nodeClock, nodeRandom, silentLogger } from '@remora/base';
import { ClientServer, etcdApi, etcdServices } from '@remora/gateway';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { ALONE_NODE } from '../../packages/gateway/test/support/alone-node.ts';
import { NO_AUTHENTICATION } from '../../packages/gateway/test/support/no-authentication.ts';
import { etcd3Scenarios } from './etcd3-scenarios.ts';
import { MemoryBackend } from './memory-backend.ts';

describe('the npm client etcd3 against the gateway alone', () => {
  const clock = nodeClock();
  const server = new ClientServer({ identification: NO_AUTHENTICATION, clock, logger: silentLogger });
  let endpoint = '';

  beforeAll(async () => {
    const backend = new MemoryBackend(clock);
    const deps = { backend, clock, random: nodeRandom(), scheme: 'http', node: ALONE_NODE } as const;
    server.add(
      ...etcdServices(
        etcdApi(deps, () => server.guard.abandoned),
        server.guard,
      ),
    );
    endpoint = `127.0.0.1:${await server.start('127.0.0.1', 0)}`;
  });
  afterAll(() => server.stop(100));

  for (const scenario of etcd3Scenarios) it.concurrent(scenario.name, () => scenario.run([endpoint]));
});
