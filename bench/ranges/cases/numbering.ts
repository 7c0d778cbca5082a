/**
 * What numbering costs the masters: CPU time of their leader per 1,000 writes, of which each takes a revision from it.
 * The masters have processes of their own, so that nothing else is in the figure; what they take when nobody writes is
 * not.
 *
 * Settings: ranges=8  inflight=16,128
 */
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'remora';
import { AdminClient } from 'remora/admin';
import { eventually } from '../../../test/e2e/eventually.ts';
import { type Cluster, withCluster } from '../../../test/e2e/harness.ts';
import { median } from '../../../test/support/quantile.ts';
import { cpuMicros } from '../../proc.ts';
import { type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';
import { setting, TIMEOUT_MS } from '../bed.ts';
import { runWorkers } from '../workers.ts';

const VALUE = Buffer.alloc(64, 'x');
const KEYS_PER_WORKER = 100;
const DATA_NODES = 3;
const SETTLE_MS = 3_000;

interface Measured {
  readonly inflight: number;
  readonly perSecond: number;
  /** Of the masters' leader, per 1,000 writes, without what it takes anyway. */
  readonly cpuMs: number;
  readonly idleCpuPercent: number;
}

export const SETTINGS = ['ranges', 'inflight'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const ranges = setting(context, 'ranges', 8);
  const flags = { roles: 'master', 'pre-split-count': String(ranges) };
  const measured = await withMasters(flags, async (endpoints, leaderPid) => {
    await using client = await connect({ endpoints, requestTimeout: '30s' });
    const put = (worker: number, n: number) => client.kv.put(keyOf(ranges, worker, n), VALUE);
    await put(0, 0);
    await pause(SETTLE_MS);
    const all: Measured[] = [];
    for (const inflight of numbersOf(context, 'inflight', [16, 128])) {
      for (let i = 0; i < context.runs; i++) {
        const idle = await cpuDuring(leaderPid, () => pause(1_000 * context.seconds));
        let done = { operations: 0, perSecond: 0 };
        const busy = await cpuDuring(leaderPid, async () => {
          done = await runWorkers(put, { workers: inflight, seconds: context.seconds, warmUpSeconds: 0 });
        });
        const cpuMs = (busy - idle) / Math.max(1, done.operations);
        context.progress(`${inflight} in flight: ${Math.round(done.perSecond)} per second, ${cpuMs.toFixed(2)} ms`);
        all.push({ inflight, perSecond: done.perSecond, cpuMs, idleCpuPercent: idle / (10_000 * context.seconds) });
      }
    }
    return all;
  });
  return { data: measured, text: render(measured), bars: [] };
}

/** A cluster of three masters and of three nodes that have everything else. */
async function withMasters<T>(
  flags: Readonly<Record<string, string>>,
  use: (endpoints: readonly string[], leaderPid: number) => Promise<T>,
): Promise<T> {
  return withCluster({ flags, awaitReady: false }, async (cluster) => {
    const nodes = [];
    for (let i = 0; i < DATA_NODES; i++) nodes.push(await cluster.addJoining({ roles: 'data,gateway' }));
    for (const node of nodes) node.start();
    await cluster.untilReady(TIMEOUT_MS);
    const endpoints = nodes.map(({ client }) => client);
    return use(endpoints, await leaderPidOf(cluster, endpoints));
  });
}

async function leaderPidOf(cluster: Cluster, endpoints: readonly string[]): Promise<number> {
  const admin = new AdminClient({ endpoints, timeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS });
  const { masterLeader, nodes } = await eventually('the masters have a leader', () => admin.nodes());
  admin.close();
  const name = nodes.find(({ id }) => id === masterLeader)?.name;
  const leader = cluster.nodes.find((node) => node.name === name);
  if (leader === undefined) throw new Error(`node ${masterLeader} is none of the cluster`);
  return leader.pid;
}

/** In µs. */
async function cpuDuring(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = cpuMicros(pid);
  await work();
  return cpuMicros(pid) - before;
}

function keyOf(ranges: number, worker: number, n: number): Buffer {
  const key = Buffer.alloc(10);
  key.writeUInt16BE(Math.ceil(((worker % ranges) * 0x1_0000) / ranges));
  key.writeUInt32BE(worker, 2);
  key.writeUInt32BE(n % KEYS_PER_WORKER, 6);
  return key;
}

function render(measured: readonly Measured[]): string {
  const inflights = [...new Set(measured.map(({ inflight }) => inflight))];
  const rows = inflights.map((inflight) => {
    const some = measured.filter((one) => one.inflight === inflight);
    const of = (value: (one: Measured) => number) => median(some.map(value));
    const cells = [of((one) => one.perSecond).toFixed(0), of((one) => one.cpuMs).toFixed(1)];
    return [String(inflight), ...cells, of((one) => one.idleCpuPercent).toFixed(1)];
  });
  return table(['in flight', 'puts/s', "CPU ms of the masters' leader per 1,000", 'its CPU % without them'], rows);
}
