// The administration's client pings no more often than a gateway permits: otherwise each call of more than a few pings,
// such as a move of a large range, ends with `too_many_pings` and an unknown outcome.
import { expect, test } from 'vitest';
import { PING_INTERVAL_MS } from '../../packages/client/src/node/grpc-connection.ts';
import { HTTP2_LIMIT_TABLE } from '../../packages/grpc-server/src/http2/limits.ts';

test('pings are as far apart as the gateway wants them', () => {
  expect(PING_INTERVAL_MS).toBeGreaterThan(HTTP2_LIMIT_TABLE.pingIntervalMs.value);
});
