import { join } from 'node:path';
import { type Random, randomGuid } from '@remora/base';
import { CommandError } from '../exit-codes.ts';
import { readJsonFile, writeJsonAtomically } from '../node/files/atomic-file.ts';

export const DEFAULT_NODES = 3;
const FILE = 'dev.json';

/** The settings that a local cluster keeps between runs. */
export interface DevSettings {
  readonly formatVersion: 1;
  readonly nodes: number;
  /** Prevents two local clusters on one machine from ever communicating. */
  readonly clusterToken: string;
}

/**
 * Reads the settings of the local cluster in `dir`, or creates new ones. `nodes` comes from the command line.
 * @throws {CommandError} if the data was created with another number of nodes, or the file is damaged.
 */
export async function loadDevSettings(dir: string, nodes: number | undefined, random: Random): Promise<DevSettings> {
  const kept = await readJsonFile(dir, FILE).catch(() => null);
  if (kept === undefined) {
    const settings = { formatVersion: 1, nodes: nodes ?? DEFAULT_NODES, clusterToken: randomGuid(random) } as const;
    await writeJsonAtomically(join(dir, FILE), settings);
    return settings;
  }
  if (!isSettings(kept))
    throw new CommandError('dataDir', `${join(dir, FILE)} is damaged; remove ${dir} to start over`);
  if (nodes !== undefined && nodes !== kept.nodes) {
    const choice = `use --nodes ${kept.nodes}, another --data-dir, or remove ${dir} to start over`;
    throw new CommandError('usage', `the cluster in ${dir} was made with ${kept.nodes} nodes; ${choice}`);
  }
  return kept;
}

function isSettings(value: unknown): value is DevSettings {
  if (typeof value !== 'object' || value === null) return false;
  const { formatVersion, nodes, clusterToken } = value as Partial<Record<keyof DevSettings, unknown>>;
  return formatVersion === 1 && Number.isSafeInteger(nodes) && typeof clusterToken === 'string';
}
