// The administration's client pings no more often than a gateway permits: otherwise each call of more than a few pings,
// such as a move of a large range, ends with `too_many_pings` and an unknown outcome.
import { expect, test } from 'vitest';
import { KEEPALIVE } from '../../packages/client/src/node/admin-connection.ts';
import { HTTP2_LIMIT_TABLE } from '../../packages/grpc-server/src/http2/limits.ts';

test('pings are as far apart as the gateway wants them', () => {
  expect(KEEPALIVE['grpc.keepalive_time_ms']).toBeGreaterThan(HTTP2_LIMIT_TABLE.pingIntervalMs.value);
});
