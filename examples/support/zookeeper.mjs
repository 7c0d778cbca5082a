// ZooKeeper as the examples use it: one server on loopback, from Debian's package.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import zookeeperClient from 'node-zookeeper-client';
import { freePorts, HOST, startProcess } from './processes.mjs';
import { until } from './until.mjs';

const JAVA = '/usr/bin/java';
const JAR = '/usr/share/java/zookeeper.jar';
/** The shortest session that a server grants is two of these. */
const TICK_MS = 500;
const PROBE_TIMEOUT_MS = 1_000;

export const zookeeper = {
  name: 'ZooKeeper',
  package: 'zookeeper',
  installed: existsSync(JAVA) && existsSync(JAR),
};

export async function startZooKeeper(stage) {
  const [port] = await freePorts(1);
  const dataDir = join(stage.dir, 'zookeeper');
  mkdirSync(dataDir);
  const settings = {
    clientPort: port,
    clientPortAddress: HOST,
    dataDir,
    tickTime: TICK_MS,
    maxClientCnxns: 0,
    'admin.enableServer': false,
    '4lw.commands.whitelist': 'srvr',
  };
  const config = join(stage.dir, 'zoo.cfg');
  writeFileSync(
    config,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  const process = startProcess(stage, {
    program: JAVA,
    args: ['-Xmx128m', '-cp', JAR, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', config],
    logPath: join(stage.dir, 'zookeeper.log'),
  });
  await untilServing(port, process);
  return port;
}

/** It listens before it serves, and who connects in between may never hear of it. */
function untilServing(port, process) {
  return until('ZooKeeper serves', () => {
    if (!process.running()) throw new Error('ZooKeeper has ended instead of getting ready');
    return new Promise((resolve) => {
      let answer = '';
      const socket = connect(port, HOST, () => socket.write('srvr'));
      socket.on('data', (bytes) => {
        answer += bytes;
      });
      socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy());
      socket.once('error', () => {});
      socket.once('close', () => resolve(answer.includes('Mode: standalone')));
    });
  });
}

/** A session of its own; its calls as promises. */
export async function zooKeeperSession(stage, port, sessionTimeoutMs) {
  const client = zookeeperClient.createClient(`${HOST}:${port}`, { sessionTimeout: sessionTimeoutMs, retries: 0 });
  client.connect();
  stage.atEnd(async () => client.close());
  await until('ZooKeeper answers', () => client.getState() === zookeeperClient.State.SYNC_CONNECTED);
  return {
    /** Gives the path that the server chose. @throws The client's exception, with its `name`. */
    create: (path, mode) =>
      promised((done) => client.create(path, Buffer.alloc(0), zookeeperClient.CreateMode[mode], done)),
    remove: (path) => promised((done) => client.remove(path, -1, done)),
    children: async (path) => (await promised((done) => client.getChildren(path, done))).sort(),
    /** Whether the node is there; `onEvent` is called once, at its next change. */
    exists: async (path, onEvent) => (await promised((done) => client.exists(path, onEvent, done))) !== null,
    connected: () => client.getState() === zookeeperClient.State.SYNC_CONNECTED,
  };
}

function promised(call) {
  return new Promise((resolve, reject) => {
    call((error, result) => {
      if (error) reject(error);
      else resolve(result ?? null);
    });
  });
}
