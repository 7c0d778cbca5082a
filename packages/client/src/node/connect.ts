import { hostname } from 'node:os';
import { type ChannelCredentials, credentials as grpcCredentials } from '@grpc/grpc-js';
import { type Logger, nodeClock, nodeRandom, silentLogger } from '@remora/base';
import { dialPipe } from '@remora/protocol';
import { type ClientOptions, RemoraClient } from '../client.ts';
import type { Liveness } from '../ports.ts';

export interface ConnectOptions extends ClientOptions {
  /** TLS: `credentials.createSsl(...)` of `@grpc/grpc-js`. Plain text without it. */
  readonly credentials?: ChannelCredentials;
  readonly logger?: Logger;
}

/**
 * Connects to a Remora cluster.
 *
 * ```ts
 * const remora = await connect({ endpoints: ['10.0.0.1:2379', '10.0.0.2:2379'] });
 * await using lock = await remora.lock('orders/42').acquire({ wait: '5s' });
 * await ship(order, { fence: lock.version, signal: lock.signal });
 * ```
 */
export function connect(options: ConnectOptions): Promise<RemoraClient> {
  const credentials = options.credentials ?? grpcCredentials.createInsecure();
  return RemoraClient.open(
    {
      clock: nodeClock(),
      random: nodeRandom(),
      logger: options.logger ?? silentLogger,
      connectLink: (target) => dialPipe(target, credentials),
      liveness: processLiveness(),
    },
    { ...options, attributes: { host: hostname(), pid: String(process.pid), ...options.attributes } },
  );
}

/** Longer than any wait: the timer's only use is that it exists. */
const FOREVER_MS = 2 ** 31 - 1;

/** While something is awaited a timer keeps the process alive, as those of the SDK's clock do not. */
function processLiveness(): Liveness {
  let holders = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    hold() {
      holders++;
      if (timer === undefined) timer = setInterval(() => {}, FOREVER_MS);
      else if (holders === 1) timer.ref();
    },
    release() {
      holders--;
      if (holders === 0) timer?.unref();
    },
  };
}
