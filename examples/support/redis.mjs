// Redis as the examples use it: a server on loopback that keeps nothing on disk.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePorts, HOST, startProcess, untilListening } from './processes.mjs';

const PROGRAM = ['/usr/bin/redis-server', '/usr/local/bin/redis-server'].find((path) => existsSync(path));

export const redis = { name: 'Redis', package: 'redis-server', installed: PROGRAM !== undefined };

export async function startRedis(stage, { replicaOf } = {}) {
  const [port] = await freePorts(1);
  const args = ['--bind', HOST, '--port', String(port), '--dir', stage.dir, '--save', '', '--appendonly', 'no'];
  if (replicaOf !== undefined) args.push('--replicaof', HOST, String(replicaOf), '--repl-diskless-sync-delay', '0');
  const process = startProcess(stage, { program: PROGRAM, args, logPath: join(stage.dir, `redis-${port}.log`) });
  await untilListening('Redis', port, process);
  return { port, kill: process.kill, client: () => connectTo(stage, port) };
}

function connectTo(stage, port) {
  const client = new Redis({ host: HOST, port, maxRetriesPerRequest: 3 });
  // Of a server that a story kills.
  client.on('error', () => {});
  stage.atEnd(async () => client.disconnect());
  return client;
}

/** The lock that everybody begins with: `SET name owner NX PX ttl`. */
export async function setLock(client, name, owner, ttlMs) {
  return (await client.set(name, owner, 'PX', ttlMs, 'NX')) === 'OK';
}
