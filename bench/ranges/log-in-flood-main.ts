/**
 * A process that floods nodes with log-ins until its parent ends it: from several addresses of this machine, because a
 * node lets only few log-ins of one address wait. The passwords are wrong, which costs a node as much as right ones.
 *
 * For comparison, the same clients can send requests that a node answers at once, without a password.
 */
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

export interface FloodArguments {
  /** `host:port` of HTTP. */
  readonly nodes: readonly string[];
  readonly addresses: number;
  /** Clients of each address, each with one request at a time. */
  readonly clients: number;
  readonly sends: 'log-ins' | 'requests';
}

/** After a request that was answered at once: a log-in that was refused because too many wait, or no log-in. */
const ANSWERED_PAUSE_MS = 50;
/** etcd's answer to a wrong password. */
const WRONG_PASSWORD = 400;

const { nodes, addresses, clients, sends } = JSON.parse(process.argv[2] ?? '{}') as FloodArguments;
const counts = { hashed: 0, atOnce: 0 };

/** Resolves to the status of the answer. */
function send(node: string, agent: Agent, user: string): Promise<number> {
  const [host, port] = node.split(':');
  const isLogIn = sends === 'log-ins';
  const target = isLogIn ? { method: 'POST', path: '/v3/auth/authenticate' } : { method: 'GET', path: '/version' };
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request({ host, port, agent, headers, ...target }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', () => resolve(0)).end(isLogIn ? JSON.stringify({ name: user, password: 'wrong' }) : '');
  });
}

async function client(node: string, agent: Agent, user: string): Promise<void> {
  for (;;) {
    const status = await send(node, agent, user);
    if (status === WRONG_PASSWORD) counts.hashed += 1;
    else {
      counts.atOnce += 1;
      await pause(ANSWERED_PAUSE_MS);
    }
  }
}

for (const node of nodes) {
  for (let i = 0; i < addresses; i++) {
    const agent = new Agent({ keepAlive: true, localAddress: `127.0.1.${i + 1}` });
    for (let j = 0; j < clients; j++) void client(node, agent, `nobody-${i}-${j}`);
  }
}
process.on('message', () => process.send?.({ type: 'counts', ...counts }));
process.on('disconnect', () => process.exit(0));
