import { type Clock, type FrameService, type Logger, RareLog, ServiceError, silentLogger } from '@remora/base';
import {
  acceptedLink,
  clusterRefusal,
  HeldBytes,
  PIPE_HELLO,
  PIPE_SERVICE,
  pipeRefusal,
  type ServedLink,
  type ServerLimits,
} from '@remora/protocol';
import type { Backend } from '../../backend.ts';
import type { RequestLimits } from '../../request-limits.ts';
import { createPipeRegistry, PIPE_HELD_BYTES_MAX, type PipeRegistryOptions, servePipe } from '../pipe-server.ts';

export interface PipeServiceOptions extends Omit<PipeRegistryOptions, 'requestLimits'> {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly limits?: ServerLimits;
  /** The largest request; the port takes frames of `pipeFrameBytesMax(requestBytesMax)`. */
  readonly requestLimits?: RequestLimits;
  /** Connections open at a time; further ones are refused with RESOURCE_EXHAUSTED. */
  readonly connectionsMax?: number;
  readonly logger?: Logger;
  /** Called for each call that is refused because too many are in flight. */
  readonly onBusy?: () => void;
  /** Called for each call that is refused as malformed. */
  readonly onMalformed?: () => void;
}

export interface PipeService extends FrameService {
  /** Open connections. */
  readonly connections: number;
  /** Closes all connections and accepts no more; clients continue at another gateway. */
  close(): void;
}

const CONNECTIONS_MAX = 10_000;

/** The Pipe for the gateway's port. */
export function createPipeService(options: PipeServiceOptions): PipeService {
  const registry = createPipeRegistry(options.backend, options);
  const log = new RareLog(options.clock, options.logger ?? silentLogger);
  const links = new Set<ServedLink>();
  const held = new HeldBytes(PIPE_HELD_BYTES_MAX);
  const connectionsMax = options.connectionsMax ?? CONNECTIONS_MAX;
  let closed: ServiceError | undefined;

  function fullness(): ServiceError | undefined {
    if (links.size < connectionsMax) return undefined;
    return new ServiceError(
      'RESOURCE_EXHAUSTED',
      `${connectionsMax} clients are connected, which is the limit; connect to another gateway`,
    );
  }

  return {
    name: PIPE_SERVICE,
    open(hello, stream) {
      const refusal = closed ?? pipeRefusal(hello) ?? clusterRefusal(hello, options.cluster ?? '') ?? fullness();
      if (refusal !== undefined) {
        const { code, message: reason } = refusal;
        log.warn(code, { peer: stream.peerAddress, code, reason }, 'refused a client');
        return stream.end(refusal);
      }
      stream.sayHello(PIPE_HELLO);
      const link = servePipe({
        link: acceptedLink(stream),
        registry,
        clock: options.clock,
        connection: { door: 'pipe', certificateName: stream.verifiedName, address: stream.peerHost, token: undefined },
        held,
        onClose: () => links.delete(link),
        ...(options.limits === undefined ? {} : { limits: options.limits }),
        ...(options.onBusy === undefined ? {} : { onBusy: options.onBusy }),
        ...(options.onMalformed === undefined ? {} : { onMalformed: options.onMalformed }),
      });
      links.add(link);
    },
    get connections() {
      return links.size;
    },
    close() {
      closed = new ServiceError('UNAVAILABLE', 'the gateway is stopping');
      for (const link of [...links]) link.close(closed);
    },
  };
}
