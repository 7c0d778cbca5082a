import type { ConnectionOptions } from 'node:tls';
import { nodeClock, nodeRandom, ServiceError } from '@remora/base';
import { dialPipe, type PipeGateways, pipeGateways, ReconnectingChannel } from '@remora/protocol';

interface AskOptions {
  readonly timeoutMs: number;
  readonly cluster?: string;
  readonly tls: ConnectionOptions | undefined;
}

/**
 * Asks the gateway at an address for the other gateways of its cluster. Undefined when it does not answer in time, or
 * belongs to another cluster than `cluster`, if that is given.
 */
export async function askGateways(address: string, options: AskOptions): Promise<PipeGateways | undefined> {
  const told = await ask(address, options);
  return told instanceof ServiceError ? undefined : told;
}

/** Why the gateway at an address does not answer; undefined if it does. */
export async function silenceOf(address: string, options: AskOptions): Promise<ServiceError | undefined> {
  const told = await ask(address, options);
  return told instanceof ServiceError ? told : undefined;
}

function ask(address: string, { timeoutMs, cluster, tls }: AskOptions): Promise<PipeGateways | ServiceError> {
  const clock = nodeClock();
  const connect = (): ReturnType<typeof dialPipe> => dialPipe(address, { clock, tls, cluster });
  const options = { connectTimeoutMs: timeoutMs };
  const channel = new ReconnectingChannel({ connect, clock, random: nodeRandom(), options }, 0, () => address);
  return new Promise((resolve) => {
    channel.call(pipeGateways, undefined, { timeoutMs }, (error, told) => {
      channel.close();
      resolve(told ?? error ?? new ServiceError('INTERNAL', 'neither an answer nor an error'));
    });
  });
}
