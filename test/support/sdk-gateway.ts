import { nodeClock, openFramePort } from '@remora/base';
import { type Backend, createPipeService, type PipeService, REQUEST_LIMITS } from '@remora/gateway';
import { pipeFrameBytesMax } from '@remora/protocol';
import { NO_AUTHENTICATION } from '../../packages/gateway/test/support/no-authentication.ts';

/** A gateway in this process, to which clients come over real sockets. */
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
  const clock = nodeClock();
  const pipe = createPipeService({ backend, clock, requestLimits, identification: NO_AUTHENTICATION });
  const frameBytesMax = pipeFrameBytesMax(requestBytesMax);
  const port = await openFramePort({ clock, host: '127.0.0.1', port: 0, frameBytesMax, services: [pipe] });
  return {
    address: `127.0.0.1:${port.port}`,
    pipe,
    stop() {
      pipe.close();
      port.close();
    },
  };
}
