/** The usual client port, and the first one of a local cluster. */
export const DEFAULT_BASE_PORT = 7480;

/** The ports of the nth node (from 1) of a local cluster: ten apart, and different from etcd's 2379 and Redis' 6379. */
export function localPorts(
  basePort: number,
  n: number,
): { client: number; peer: number; http: number; health: number } {
  const client = basePort + 10 * (n - 1);
  return { client, peer: client + 1, http: client + 2, health: client + 3 };
}
