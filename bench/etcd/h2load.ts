/** Runs h2load, the load program of nghttp2, which costs next to nothing itself. */
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessCluster } from '../process-cluster.ts';
import { exited, type LoadFigures, ServerCpu } from './bed.ts';

export interface H2Load {
  readonly path: string;
  /** The request's message. */
  readonly message: Buffer;
  readonly connections: number;
  readonly streams: number;
}

const PROBE_SECONDS = 1;

/** @throws Error with advice when it is not installed. */
export function needH2load(): void {
  if (spawnSync('h2load', ['--version']).status === 0) return;
  throw new Error('this case needs h2load; on Debian: apt-get install nghttp2-client');
}

/**
 * Sends as many requests as take about `seconds`, which a probe of one second tells, and counts the CPU time of all of
 * them.
 */
export async function h2load(
  cluster: ProcessCluster,
  load: H2Load,
  dir: string,
  seconds: number,
): Promise<LoadFigures> {
  const address = await cluster.entryAddress();
  const { access } = cluster;
  const body = join(dir, `body-${cluster.name}`);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(load.message.length, 1);
  writeFileSync(body, Buffer.concat([head, load.message]));
  const args = [
    ...['-c', load.connections, '-m', load.streams, '-t', 1, '-d', body],
    ...['-H', 'content-type: application/grpc', '-H', 'te: trailers'],
    // A client that offers HTTP/1.1, too, gets HTTP/1.1: it may be a browser.
    ...(access === undefined ? [] : ['--npn-list', 'h2', '-H', `token: ${await access.token(address)}`]),
    `${access === undefined ? 'http' : 'https'}://${address}${load.path}`,
  ].map(String);
  const probe = await run(['-D', String(PROBE_SECONDS), ...args]);
  const count = Math.max(load.connections * load.streams, Math.round(probe.rate * seconds));
  const cpu = new ServerCpu(await cluster.processes('unary-put'));
  const { rate, succeeded, meanMs, maxMs } = await run(['-n', String(count), ...args]);
  return {
    ops: succeeded,
    opsPerSecond: rate,
    errors: count - succeeded,
    p50Ms: meanMs,
    p99Ms: maxMs,
    ...cpu.perOp(count),
  };
}

interface H2LoadSays {
  readonly rate: number;
  readonly succeeded: number;
  readonly meanMs: number;
  readonly maxMs: number;
}

async function run(args: readonly string[]): Promise<H2LoadSays> {
  const child = spawn('h2load', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  for (const pipe of [child.stdout, child.stderr]) pipe.on('data', (chunk) => (out += chunk));
  const how = await exited(child);
  const [, rate] = /([\d.]+) req\/s/.exec(out) ?? [];
  const [, succeeded] = /(\d+) succeeded/.exec(out) ?? [];
  const [, , max, mean] = /time for request:\s+(\S+)\s+(\S+)\s+(\S+)/.exec(out) ?? [];
  if (rate === undefined || succeeded === undefined) throw new Error(`h2load says nothing to go by (${how}): ${out}`);
  return { rate: Number(rate), succeeded: Number(succeeded), meanMs: milliseconds(mean), maxMs: milliseconds(max) };
}

/** h2load's times have units: `512us`, `1.20ms`, `2.01s`. */
function milliseconds(text = '0ms'): number {
  const value = Number.parseFloat(text);
  if (text.endsWith('us')) return value / 1_000;
  return text.endsWith('ms') ? value : value * 1_000;
}
