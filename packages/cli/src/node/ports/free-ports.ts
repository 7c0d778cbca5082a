/**
 * Looks whether the ports of a node are free before the node does anything that others notice. The node binds its ports
 * for clients last, when it can serve: without this check, one that cannot bind them would have joined its cluster by
 * then, and the cluster would list a node that never served.
 */
import { createServer } from 'node:net';
import type { Address } from '@remora/base';
import type { NodeOptions } from '../../node-options.ts';
import { listen } from './http-server.ts';

type PortOptions = Pick<NodeOptions, 'roles' | 'clientListen' | 'peerListen' | 'httpListen' | 'healthListen'>;

/** @throws CommandError that names the flag of a port that cannot be opened. */
export async function expectFreePorts(options: PortOptions): Promise<void> {
  const { clientListen, peerListen, httpListen, healthListen } = options;
  if (options.roles.includes('gateway')) await expectFree(clientListen, '--client-listen');
  await expectFree(peerListen, '--peer-listen');
  await expectFree(httpListen, '--http-listen');
  await expectFree(healthListen, '--health-listen');
}

async function expectFree(address: Address, flag: string): Promise<void> {
  const server = createServer();
  await listen(server, address, flag);
  await new Promise((resolve) => server.close(resolve));
}
