import { durationMs, formatDurationMs, type OptionType, ServiceError } from '@remora/base';
import { NAME_BYTES_MAX } from '@remora/lock';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type ConnectOptions, connect, type RemoraClient } from 'remora';
import { CommandError } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';
import { addServerFlags, type ServerFlags, type Servers, serversOf } from './servers.ts';

/** The flags of every command that connects to a cluster. */
export interface ConnectionFlags extends ServerFlags {
  readonly timeout: number;
  readonly discover: boolean;
  readonly json?: true;
}

/** How long to look for a node that answers: a running one does so at once. */
export const CONNECT_TIMEOUT_MS = 3_000;

/** Adds the flags to find a cluster to a command. */
export function addConnectionFlags(command: Command, shell: Shell): Command {
  const limits = { min: 1, max: 60_000 };
  const timeout = durationOption('--timeout', { desc: 'time limit of one request', defaultMs: 10_000, limits });
  return addServerFlags(command, shell)
    .addOption(timeout)
    .option('--no-discover', 'use only these endpoints, not the other gateways of the cluster')
    .option('--json', 'print JSON');
}

/** Connects, does the work and closes the connection, whatever the result. */
export async function withClient<T>(
  flags: ConnectionFlags & { readonly ttl?: number },
  work: (client: RemoraClient) => Promise<T>,
  options: Pick<ConnectOptions, 'journal' | 'logger'> = {},
): Promise<T> {
  const client = await connected(flags, options);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function connected(
  flags: ConnectionFlags & { readonly ttl?: number },
  options: Pick<ConnectOptions, 'journal' | 'logger'>,
): Promise<RemoraClient> {
  const servers = serversOf(flags);
  const credentials = await flags.credentials?.();
  const connectTimeout = Math.min(flags.timeout, CONNECT_TIMEOUT_MS);
  try {
    return await connect({
      ...options,
      ...servers,
      ...credentials,
      discover: flags.discover,
      requestTimeout: flags.timeout,
      connectTimeout,
      ...(flags.ttl === undefined ? {} : { sessionTtl: flags.ttl }),
    });
  } catch (cause) {
    const nobody = cause instanceof ServiceError && ['UNAVAILABLE', 'DEADLINE_EXCEEDED'].includes(cause.code);
    if (!nobody) throw cause;
    throw noNodeAnswers(servers, connectTimeout, cause);
  }
}

export function noNodeAnswers({ endpoints }: Servers, triedMs: number, cause: unknown): CommandError {
  const message =
    `no node answers at ${endpoints.join(', ')} (tried for ${formatDurationMs(triedMs)})${reasonOf(cause)}\n` +
    'Is the cluster running? Set other addresses with --endpoints or REMORA_ENDPOINTS, or start a local cluster with `remora dev`.';
  return new CommandError('unavailable', message, { cause });
}

/** What the last node said, or why it could not be reached. That nobody listens there, people know already. */
function reasonOf(cause: unknown): string {
  let reason = cause;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  return reason instanceof Error && !reason.message.includes('ECONNREFUSED') ? `: ${reason.message}` : '';
}

/** The examples at the end of a command's help: each with its purpose and command line. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`;
}

interface DurationFlag {
  readonly desc: string;
  readonly defaultMs: number;
  readonly limits: { readonly min?: number; readonly max: number };
}

/** A flag whose help shows its default and its maximum, as they would be typed. */
export function durationOption(name: string, { desc, defaultMs, limits }: DurationFlag): Option {
  return new Option(`${name} <duration>`, `${desc}, at most ${formatDurationMs(limits.max)}`)
    .default(defaultMs, formatDurationMs(defaultMs))
    .argParser(flagReader(durationMs(limits)));
}

/** Reads the name of a lock, or of another primitive: refused like any invalid argument, before a server is asked. */
export function readLockName(text: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes >= 1 && bytes <= NAME_BYTES_MAX) return text;
  throw new CommandError('usage', `the name has ${bytes} bytes; a name must have 1 to ${NAME_BYTES_MAX} bytes`);
}

/** Reads a flag's text by an option type, with the type's error message. */
export function flagReader<T>(type: OptionType<T>): (text: string) => T {
  return (text) => {
    const reading = type.parse(text);
    if (!reading.ok) throw new InvalidArgumentError(`Expected ${reading.expected}.`);
    return reading.value;
  };
}
