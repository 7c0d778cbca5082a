import {
  type handleBidiStreamingCall,
  Metadata,
  type ServerDuplexStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type Bytes, type Clock, type Logger, ServiceError, silentLogger } from '@remora/base';
import {
  HeldBytes,
  metadataText,
  PIPE_PROTOCOL_VERSION,
  PIPE_VERSION_KEY,
  pipeDefinition,
  refuseStream,
  type ServedLink,
  type ServerLimits,
  serverLink,
} from '@remora/protocol';
import type { Backend } from '../../backend.ts';
import type { RequestLimits } from '../../request-limits.ts';
import { createPipeRegistry, PIPE_HELD_BYTES_MAX, servePipe } from '../pipe-server.ts';

export interface PipeServiceOptions {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly limits?: ServerLimits;
  /** What one request may hold; the gRPC server takes frames of `pipeFrameBytesMax(requestBytesMax)`. */
  readonly requestLimits?: RequestLimits;
  /** Connections open at once; one more is refused with RESOURCE_EXHAUSTED. */
  readonly connectionsMax?: number;
  readonly logger?: Logger;
  /** Told of each call that is refused because too much is under way. */
  readonly onBusy?: () => void;
}

export interface PipeService {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
  /** Open connections. */
  readonly connections: number;
  /** Ends all connections; clients go on at another gateway. */
  close(): void;
}

const CONNECTIONS_MAX = 10_000;

/** The Pipe for the gateway's gRPC server: `server.addService(pipe.definition, pipe.implementation)`. */
export function createPipeService(options: PipeServiceOptions): PipeService {
  const registry = createPipeRegistry(options.backend, options.requestLimits);
  const logger = options.logger ?? silentLogger;
  const links = new Set<ServedLink>();
  const held = new HeldBytes(PIPE_HELD_BYTES_MAX);

  function open(stream: ServerDuplexStream<Bytes, Bytes>): void {
    const refusal = refusalOf(metadataText(stream.metadata, PIPE_VERSION_KEY));
    if (refusal !== undefined) {
      logger.warn({ peer: stream.getPeer(), code: refusal.code }, 'refused a client');
      stream.on('error', () => {});
      refuseStream(stream, refusal);
      return;
    }
    const metadata = new Metadata();
    metadata.set(PIPE_VERSION_KEY, PIPE_PROTOCOL_VERSION);
    stream.sendMetadata(metadata);
    const link = servePipe({
      link: serverLink(stream),
      registry,
      clock: options.clock,
      held,
      onClose: () => links.delete(link),
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      ...(options.onBusy === undefined ? {} : { onBusy: options.onBusy }),
    });
    links.add(link);
  }

  function refusalOf(version: string): ServiceError | undefined {
    if (version !== PIPE_PROTOCOL_VERSION) {
      return new ServiceError('UNIMPLEMENTED', `Pipe version '${version}' is not '${PIPE_PROTOCOL_VERSION}'`);
    }
    const max = options.connectionsMax ?? CONNECTIONS_MAX;
    return links.size < max ? undefined : new ServiceError('RESOURCE_EXHAUSTED', `${max} clients are connected`);
  }

  const handler: handleBidiStreamingCall<Bytes, Bytes> = open;
  return {
    definition: pipeDefinition,
    implementation: { open: handler },
    get connections() {
      return links.size;
    },
    close() {
      const reason = new ServiceError('UNAVAILABLE', 'the gateway is stopping');
      for (const link of [...links]) link.close(reason);
    },
  };
}
