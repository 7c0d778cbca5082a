/** The options of a test cluster, checked. */
import { type Logger, parseDurationMs, parseOptions, silentLogger } from '@remora/base';
import { RemoraError } from 'remora';
import { type NodeOptions, nodeSchema } from '../node-options.ts';
import type { TestAddresses, TestClientOptions, TestClusterOptions, TestDuration } from './api.ts';
import { freePorts } from './free-ports.ts';

export interface TestSettings {
  readonly runs: boolean;
  readonly seed: number;
  readonly listens: boolean;
  readonly logger: Logger;
}

type Names<Options> = Readonly<Record<keyof Options, true>>;

const CLUSTER_OPTIONS: Names<TestClusterOptions> = { clock: true, seed: true, listen: true, logger: true };
const CLIENT_OPTIONS: Names<TestClientOptions> = {
  ...{ requestTimeout: true, retry: true, connectTimeout: true, sessionTtl: true, requestBytesMax: true },
  ...{ attributes: true, releaseOnExit: true, tracer: true, traceContext: true },
  ...{ lazy: true, metrics: true, reentrant: true },
  ...{ user: true, password: true, token: true },
};
const ADVANCE_MS_MAX = 30 * 24 * 3_600_000;

/** @throws RemoraError INVALID_ARGUMENT */
export function testSettings(options: TestClusterOptions): TestSettings {
  checkNames(options, CLUSTER_OPTIONS, 'a test cluster');
  const { clock = 'running', seed = 1, listen = false, logger = silentLogger } = options;
  if (clock !== 'running' && clock !== 'manual') throw invalid(`clock: expected 'running' or 'manual', got ${clock}`);
  if (!Number.isSafeInteger(seed) || seed < 0) throw invalid(`seed: expected a whole number from 0 on, got ${seed}`);
  if (typeof listen !== 'boolean') throw invalid(`listen: expected true or false, got ${listen}`);
  return { runs: clock === 'running', seed, listens: listen, logger };
}

/** The SDK checks the values. @throws RemoraError INVALID_ARGUMENT */
export function checkClientOptions(options: TestClientOptions): void {
  checkNames(options, CLIENT_OPTIONS, 'a client of a test cluster');
}

function checkNames(options: object, known: object, whose: string): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw invalid(`${whose} has no option ${unknown}; its options are ${Object.keys(known).join(', ')}`);
}

/** @throws RemoraError INVALID_ARGUMENT */
export function advanceMs(duration: TestDuration): number {
  const ms = typeof duration === 'number' ? duration : parseDurationMs(String(duration));
  if (ms !== undefined && ms >= 0 && ms <= ADVANCE_MS_MAX) return ms;
  throw invalid(`advance: expected milliseconds or text such as '31s', at most 30 days, got ${String(duration)}`);
}

/** The options of the node, and its addresses if it listens. */
export async function nodeSettings({
  listens,
}: TestSettings): Promise<{ readonly options: NodeOptions; readonly addresses: TestAddresses | undefined }> {
  if (!listens) return { options: parseOptions(nodeSchema, { flags: FLAGS }), addresses: undefined };
  const [client, http, health] = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
  if (client === undefined || http === undefined || health === undefined) throw new Error('there are three ports');
  const flags = { ...FLAGS, clientListen: client, httpListen: http, healthListen: health };
  return { options: parseOptions(nodeSchema, { flags }), addresses: { client, http, health } };
}

const FLAGS = { name: 'test', clusterToken: 'test', console: 'off' };

export function invalid(message: string): RemoraError {
  return new RemoraError('INVALID_ARGUMENT', message);
}
