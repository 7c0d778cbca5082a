/**
 * The clock, the chance and the other ports of a client, for parts of the SDK that are built on its public methods
 * (`remora/redlock`). A client has no field for them: programs have no use for one.
 */
import type { ClientPorts } from './ports.ts';

const PORTS = new WeakMap<object, ClientPorts>();

export function keepPorts(client: object, ports: ClientPorts): void {
  PORTS.set(client, ports);
}

/** Undefined for anything that is not a client of this copy of the SDK. */
export function portsOf(client: unknown): ClientPorts | undefined {
  return typeof client === 'object' && client !== null ? PORTS.get(client) : undefined;
}
