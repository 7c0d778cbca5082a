/** Faults between nodes, and between clients and nodes. */
import type { Random } from '@remora/base';
import { CLIENTS } from '../network/fault-network.ts';
import { drawMs, drawNode, type Fault, type FaultWorld } from './fault.ts';

const CUT_MS_MIN = 300;
const CUT_MS_MAX = 6_000;
const DELAY_MS_MAX = 250;

type Links = (from: number, to: number) => boolean;

/** Between nodes only: clients are not affected. */
export function betweenNodes(on: Links): Links {
  return (from, to) => from !== CLIENTS && to !== CLIENTS && on(from, to);
}

async function cut(world: FaultWorld, random: Random, on: Links): Promise<string> {
  const ms = drawMs(random, CUT_MS_MIN, CUT_MS_MAX);
  const silent = random.int(2) === 0;
  const mend = world.cluster.network.add({ on, ...(silent ? { blocked: true } : { refused: true }) });
  await world.pause(ms);
  mend();
  return `for ${ms} ms, ${silent ? 'in silence' : 'noticed'}`;
}

const partition: Fault = {
  kind: 'partition',
  category: 'network',
  async befall(world, random) {
    const n = await drawNode(world, random);
    const how = await cut(
      world,
      random,
      betweenNodes((from, to) => (from === n) !== (to === n)),
    );
    return `n${n} cut off from the others ${how}`;
  },
};

/** Silent faults only: a refused connection fails in both directions. */
const oneWay: Fault = {
  kind: 'one-way loss',
  category: 'network',
  async befall(world, random) {
    const n = await drawNode(world, random);
    const outwards = random.int(2) === 0;
    const ms = drawMs(random, CUT_MS_MIN, CUT_MS_MAX);
    const on = betweenNodes((from, to) => (outwards ? from === n : to === n));
    const mend = world.cluster.network.add({ on, blocked: true });
    await world.pause(ms);
    mend();
    return `nothing came ${outwards ? 'from' : 'to'} n${n} for ${ms} ms`;
  },
};

/** Two parts with only one node that reaches both. */
const bridge: Fault = {
  kind: 'bridge',
  category: 'network',
  async befall(world, random) {
    const middle = await drawNode(world, random);
    const others = world.cluster.nodes.map((_, i) => i + 1).filter((n) => n !== middle);
    const left = new Set(others.slice(0, others.length >> 1));
    const how = await cut(
      world,
      random,
      betweenNodes((from, to) => from !== middle && to !== middle && left.has(from) !== left.has(to)),
    );
    return `${[...left].map((n) => `n${n}`).join(', ')} and the rest met in n${middle} only ${how}`;
  },
};

const latency: Fault = {
  kind: 'latency',
  category: 'network',
  async befall(world, random) {
    const ms = drawMs(random, CUT_MS_MIN, CUT_MS_MAX);
    const [delayMs, jitterMs] = [random.int(DELAY_MS_MAX), random.int(DELAY_MS_MAX)];
    const n = random.int(2) === 0 ? undefined : await drawNode(world, random);
    const on = betweenNodes((from, to) => n === undefined || from === n || to === n);
    const mend = world.cluster.network.add({ on, delayMs, jitterMs });
    await world.pause(ms);
    mend();
    return `${delayMs} to ${delayMs + jitterMs} ms ${n === undefined ? 'everywhere' : `around n${n}`} for ${ms} ms`;
  },
};

const peersReset: Fault = {
  kind: 'connections reset between nodes',
  category: 'network',
  async befall(world, random) {
    const n = await drawNode(world, random);
    const broken = world.cluster.network.reset((a, b) => a !== CLIENTS && b !== CLIENTS && (a === n || b === n));
    return `${broken} connections of n${n}`;
  },
};

const gatewayReset: Fault = {
  kind: 'connections reset at a gateway',
  category: 'network',
  async befall(world, random) {
    const n = await drawNode(world, random);
    const broken = world.cluster.network.reset((a, b) => a === CLIENTS && b === n);
    return `${broken} connections of clients with n${n}`;
  },
};

const gatewayCut: Fault = {
  kind: 'gateway cut off',
  category: 'network',
  async befall(world, random) {
    const n = await drawNode(world, random);
    const how = await cut(
      world,
      random,
      (from, to) => (from === CLIENTS && to === n) || (from === n && to === CLIENTS),
    );
    return `n${n} out of reach for clients ${how}`;
  },
};

export const NETWORK_FAULTS: readonly Fault[] = [
  partition,
  oneWay,
  bridge,
  latency,
  peersReset,
  gatewayReset,
  gatewayCut,
];
