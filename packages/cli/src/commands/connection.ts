import { address, durationMs, list, type OptionType } from '@remora/base';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { connect, type RemoraClient } from 'remora';
import { DEFAULT_BASE_PORT, localPorts } from '../node-options.ts';
import type { Shell } from '../shell.ts';

/** What every command that talks to a cluster takes. */
export interface ConnectionFlags {
  readonly endpoints: string;
  readonly timeout: number;
  readonly json?: true;
}

const DEFAULT_ENDPOINTS = [1, 2, 3].map((n) => `127.0.0.1:${localPorts(DEFAULT_BASE_PORT, n).client}`).join(',');

/** Gives a command the flags by which it finds a cluster. */
export function addConnectionFlags(command: Command, shell: Shell): Command {
  const endpoints = new Option('--endpoints <host:port,...>', 'client addresses of nodes (or REMORA_ENDPOINTS)')
    .default(shell.env.REMORA_ENDPOINTS || DEFAULT_ENDPOINTS)
    .argParser((text) => readFlag(list(address(), { minLength: 1 }), text, () => text));
  const timeout = new Option('--timeout <duration>', 'how long one request may take')
    .default(10_000, '10s')
    .argParser(flagReader(durationMs({ min: 1, max: 60_000 })));
  return command.addOption(endpoints).addOption(timeout).option('--json', 'print JSON');
}

/** Connects, does the work and closes again, whatever came of it. */
export async function withClient<T>(
  flags: ConnectionFlags & { readonly ttl?: number },
  work: (client: RemoraClient) => Promise<T>,
): Promise<T> {
  const client = await connect({
    endpoints: flags.endpoints.split(',').map((endpoint) => endpoint.trim()),
    requestTimeout: flags.timeout,
    connectTimeout: flags.timeout,
    ...(flags.ttl === undefined ? {} : { sessionTtl: flags.ttl }),
  });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Reads a flag's text by an option type, with its words for what is wrong. */
export function flagReader<T>(type: OptionType<T>): (text: string) => T {
  return (text) => readFlag(type, text, (value) => value);
}

function readFlag<T, R>(type: OptionType<T>, text: string, use: (value: T) => R): R {
  const reading = type.parse(text);
  if (!reading.ok) throw new InvalidArgumentError(`Expected ${reading.expected}.`);
  return use(reading.value);
}
