// Remora as the examples use it: three nodes on loopback, or a cluster that runs already.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from 'remora';
import { freePorts, HOST, startProcess } from './processes.mjs';
import { until } from './until.mjs';

const PROGRAM = join(dirname(createRequire(import.meta.url).resolve('@remora/cli/package.json')), 'bin/remora.mjs');
const HOLDER = fileURLToPath(new URL('./remora-holder.mjs', import.meta.url));
const NODES = ['n1', 'n2', 'n3'];
const READY_TIMEOUT_MS = 60_000;

/** Without endpoints it starts a cluster. */
export async function startRemora(stage, endpoints) {
  if (endpoints !== undefined) return new Remora(stage, endpoints.split(','), []);
  const ports = await freePorts(4 * NODES.length);
  const members = NODES.map((name, i) => ({
    name,
    client: ports[4 * i],
    peer: ports[4 * i + 1],
    http: ports[4 * i + 2],
    health: `${HOST}:${ports[4 * i + 3]}`,
  }));
  const nodes = members.map((member) => ({ ...member, process: startNode(stage, member, members) }));
  await Promise.all(nodes.map((node) => untilReady(node)));
  return new Remora(
    stage,
    members.map(({ client }) => `${HOST}:${client}`),
    nodes,
  );
}

class Remora {
  endpoints;
  #stage;
  #nodes;

  constructor(stage, endpoints, nodes) {
    this.#stage = stage;
    this.endpoints = endpoints;
    this.#nodes = nodes;
  }

  /** A client in this process. */
  async client(options = {}) {
    const client = await connect({ endpoints: this.endpoints, ...options });
    this.#stage.atEnd(() => client.close());
    return client;
  }

  /** A client in a process of its own, which can be frozen and killed. */
  async holder(options = {}) {
    return startHolder(this.#stage, { endpoints: this.endpoints, ...options });
  }

  /** Kills the node that leads, at once and for good. */
  async killLeader() {
    let leader;
    await until('a node leads', async () => {
      const leads = await Promise.all(this.#nodes.map(isLeader));
      leader = this.#nodes[leads.indexOf(true)];
      return leader !== undefined;
    });
    await leader.process.kill();
    return leader.name;
  }
}

function startNode(stage, { name, client, peer, http, health }, all) {
  const flags = {
    name,
    'data-dir': join(stage.dir, name),
    'client-listen': `${HOST}:${client}`,
    'peer-listen': `${HOST}:${peer}`,
    'http-listen': `${HOST}:${http}`,
    'health-listen': health,
    'initial-cluster': all.map((member) => `${member.name}=${HOST}:${member.peer}`).join(','),
    'cluster-token': `example-${all[0].peer}`,
  };
  const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
  const logPath = join(stage.dir, `${name}.log`);
  return startProcess(stage, { program: process.execPath, args: [PROGRAM, 'node', ...args], logPath });
}

function untilReady(node) {
  const probe = async () => {
    if (!node.process.running()) throw new Error(`${node.name} has ended instead of getting ready`);
    return (await fetch(`http://${node.health}/ready`).catch(() => undefined))?.ok === true;
  };
  return until(`${node.name} is ready`, probe, READY_TIMEOUT_MS);
}

async function isLeader({ health, process }) {
  if (!process.running()) return false;
  const metrics = await fetch(`http://${health}/metrics`).then((answer) => answer.text());
  return /^remora_range_leader(\{.*\})? 1$/m.test(metrics);
}

async function startHolder(stage, options) {
  const args = [HOLDER, JSON.stringify(options)];
  const logPath = join(stage.dir, 'holders.log');
  const process = startProcess(stage, { program: globalThis.process.execPath, args, logPath, ipc: true });
  const { child } = process;
  const answers = new Map();
  let calls = 0;
  child.on('message', ({ call, error, result }) => {
    const { resolve, reject } = answers.get(call);
    if (error === undefined) resolve(result);
    else reject(new Error(error));
  });
  const ask = (what, ...args) =>
    new Promise((resolve, reject) => {
      const call = ++calls;
      answers.set(call, { resolve, reject });
      child.send({ call, what, args });
    });
  await ask('connect');
  return {
    /** Gives the version of the grant. */
    acquire: (name) => ask('acquire', name),
    /** Whether the signal of its lock is aborted, as it sees it. */
    isLost: () => ask('isLost'),
    release: () => ask('release'),
    kill: process.kill,
    freeze: process.freeze,
    thaw: process.thaw,
  };
}
