/** Clusters that cases begin with, and the form of a case. */
import { DEFAULT_SETTINGS, type Settings } from '../../src/scheduling/index.ts';
import { type SimSpec, SimulatedCluster } from './simulated-cluster.ts';

export interface Case {
  readonly name: string;
  readonly cluster: () => SimulatedCluster;
  /** What happens, by the second at which it does. */
  readonly events?: Readonly<Record<number, (cluster: SimulatedCluster) => void>>;
  readonly operatorsMax: number;
  /** Seconds within which it settles. */
  readonly settlesInS: number;
  /** Seconds for which it then stays still. */
  readonly stillS: number;
  /** Problems with how it is in the end. */
  readonly problems: (cluster: SimulatedCluster) => readonly string[];
}

export const MIB = 1024 ** 2;
export const GIB = 1024 ** 3;
export const HOUR = 3_600;

export function settings(changed: Partial<Settings> = {}): Settings {
  return { ...DEFAULT_SETTINGS, replicaDownAfterMs: 60_000, ...changed };
}

/** What an operator of so large a cluster would set. */
export const LARGE = settings({ operatorsMax: 2_000, balanceOperatorsMax: 1_000 });

export function nodes(count: number, of: (i: number) => SimSpec['nodes'][number] = () => ({})): SimSpec['nodes'] {
  return Array.from({ length: count }, (_, i) => of(i));
}

export function zones(count: number, zoneCount: number): SimSpec['nodes'] {
  return nodes(count, (i) => ({ labels: { zone: `z${i % zoneCount}`, host: `h${i}` } }));
}

type Load = Parameters<SimulatedCluster['addRange']>[1];

/** Range i has its replicas on nodes i, i+1, … around the ring, and is led by the first of them. */
function aroundTheRing(cluster: SimulatedCluster, count: number, load: (i: number) => Load = () => ({})): void {
  const nodeCount = cluster.nodes.size;
  const { replicas } = cluster.scheduling.settings;
  for (let i = 0; i < count; i++) {
    cluster.addRange(
      Array.from({ length: replicas }, (_, j) => ((i + j) % nodeCount) + 1),
      load(i),
    );
  }
}

export function ring(spec: SimSpec, count: number, load?: (i: number) => Load): SimulatedCluster {
  const cluster = new SimulatedCluster(spec);
  aroundTheRing(cluster, count, load);
  return cluster;
}

/** All on the same nodes, led by the first. */
export function together(
  spec: SimSpec,
  count: number,
  on: readonly number[],
  load?: (i: number) => Load,
): SimulatedCluster {
  const cluster = new SimulatedCluster(spec);
  for (let i = 0; i < count; i++) cluster.addRange(on, load?.(i));
  return cluster;
}

export function killAll(cluster: SimulatedCluster, nodeIds: readonly number[]): void {
  for (const nodeId of nodeIds) cluster.kill(nodeId);
}

export function reviveAll(cluster: SimulatedCluster, nodeIds: readonly number[]): void {
  for (const nodeId of nodeIds) cluster.revive(nodeId);
}
