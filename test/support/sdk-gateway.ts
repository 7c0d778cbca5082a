import { Server, ServerCredentials } from '@grpc/grpc-js';
import { nodeClock } from '@remora/base';
import { type Backend, createPipeService, type PipeService, REQUEST_LIMITS } from '@remora/gateway';
import { pipeFrameBytesMax } from '@remora/protocol';

/** A gateway in this process, to which clients come over real gRPC. */
export interface SdkGateway {
  readonly address: string;
  readonly pipe: PipeService;
  stop(): void;
}

export async function startSdkGateway(
  backend: Backend,
  requestBytesMax = REQUEST_LIMITS.requestBytesMax,
): Promise<SdkGateway> {
  const requestLimits = { ...REQUEST_LIMITS, requestBytesMax };
  const pipe = createPipeService({ backend, clock: nodeClock(), requestLimits });
  const server = new Server({ 'grpc.max_receive_message_length': pipeFrameBytesMax(requestBytesMax) });
  server.addService(pipe.definition, pipe.implementation);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return {
    address: `127.0.0.1:${port}`,
    pipe,
    stop() {
      pipe.close();
      server.forceShutdown();
    },
  };
}
