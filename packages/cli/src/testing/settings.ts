/** The options of a test cluster, checked. */
import { type Logger, parseDurationMs, parseOptions, silentLogger } from '@remora/base';
import { RemoraError } from 'remora';
import { type NodeOptions, nodeSchema } from '../node-options.ts';
import type { TestAddresses, TestClusterOptions, TestDuration } from './api.ts';
import { freePorts } from './free-ports.ts';

export interface TestSettings {
  readonly runs: boolean;
  readonly seed: number;
  readonly listens: boolean;
  readonly logger: Logger;
}

const NAMES = ['clock', 'seed', 'listen', 'logger'];
const ADVANCE_MS_MAX = 30 * 24 * 3_600_000;

/** @throws RemoraError INVALID_ARGUMENT */
export function testSettings(options: TestClusterOptions): TestSettings {
  for (const name of Object.keys(options)) {
    if (!NAMES.includes(name))
      throw invalid(`a test cluster has no option ${name}; its options are ${NAMES.join(', ')}`);
  }
  const { clock = 'running', seed = 1, listen = false, logger = silentLogger } = options;
  if (clock !== 'running' && clock !== 'manual') throw invalid(`clock: expected 'running' or 'manual', got ${clock}`);
  if (!Number.isSafeInteger(seed) || seed < 0) throw invalid(`seed: expected a whole number from 0 on, got ${seed}`);
  if (typeof listen !== 'boolean') throw invalid(`listen: expected true or false, got ${listen}`);
  return { runs: clock === 'running', seed, listens: listen, logger };
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
