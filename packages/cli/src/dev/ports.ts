import { createServer } from 'node:net';

/** The first of `ports` that cannot be bound on `host`; undefined when all are free. */
export async function firstTakenPort(host: string, ports: readonly number[]): Promise<number | undefined> {
  for (const port of ports) {
    if (!(await isFree(host, port))) return port;
  }
  return undefined;
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
