import { durationMs, formatDurationMs, ServiceError } from '@remora/base';
import { type Command, Option } from 'commander';
import { AdminClient } from 'remora/admin';
import { CommandError } from '../../exit-codes.ts';
import { type Shell, stopSignal } from '../../shell.ts';
import {
  addConnectionFlags,
  CONNECT_TIMEOUT_MS,
  type ConnectionFlags,
  flagReader,
  noNodeAnswers,
} from '../connection.ts';
import { serversOf } from '../servers.ts';

/** Connects, does the work and closes the connection, whatever the result. */
export async function withAdmin<T>(flags: ConnectionFlags, work: (client: AdminClient) => Promise<T>): Promise<T> {
  const servers = serversOf(flags);
  const credentials = await flags.credentials?.();
  const triedMs = Math.min(flags.timeout, CONNECT_TIMEOUT_MS);
  // The nodes are asked one after the other.
  const connectTimeoutMs = Math.ceil(triedMs / servers.endpoints.length);
  const { timeout: timeoutMs, discover } = flags;
  const client = new AdminClient({ ...servers, ...credentials, timeoutMs, connectTimeoutMs, discover });
  try {
    return await work(client);
  } catch (error) {
    const unreached = error instanceof ServiceError && error.details?.unreached === true;
    throw unreached ? noNodeAnswers(servers, triedMs, error) : error;
  } finally {
    client.close();
  }
}

export interface ViewFlags extends ConnectionFlags {
  /** The interval in ms at which to show again. */
  readonly watch?: number;
}

const WATCH_DEFAULT_MS = 2_000;

/** Adds the flags to find a cluster, and to show repeatedly, to a command. */
export function addViewFlags(command: Command, shell: Shell): Command {
  const reader = flagReader(durationMs({ min: 100, max: 3_600_000 }));
  const watch = new Option('--watch [interval]', 'refresh at this interval until Ctrl-C')
    .preset(formatDurationMs(WATCH_DEFAULT_MS))
    .argParser(reader);
  return addConnectionFlags(command, shell).addOption(watch);
}

/** What a view shows: for people, and for programs. */
export interface View {
  readonly text: string;
  readonly json: unknown;
}

/** Shows once, or repeatedly: on a terminal in the same place, otherwise one after the other; as JSON one per line. */
export async function show(
  flags: ViewFlags,
  shell: Shell,
  look: (client: AdminClient) => Promise<View>,
): Promise<void> {
  await withAdmin(flags, async (client) => {
    if (flags.watch === undefined) return print(await look(client), flags, shell);
    const stop = stopSignal();
    try {
      for (let rounds = 0; !stop.signal.aborted; rounds++) {
        await round({ flags, shell, first: rounds === 0 }, () => look(client));
        await pauseOrStop(flags.watch, stop.signal);
      }
    } finally {
      stop.dispose();
    }
  });
}

/** After its first answer, a cluster that cannot answer for a while does not end the view. */
async function round(
  { flags, shell, first }: { readonly flags: ViewFlags; readonly shell: Shell; readonly first: boolean },
  look: () => Promise<View>,
): Promise<void> {
  let view: View;
  try {
    view = await look();
  } catch (error) {
    if (first || !(error instanceof ServiceError)) throw error;
    return shell.err(`remora: ${error.message} (${error.code})`);
  }
  if (!flags.json && shell.terminal) shell.raw(CLEAR);
  print(view, flags, shell);
  if (!flags.json && !shell.terminal) shell.out('');
}

/** Moves to the upper left corner, and clears the rest. */
const CLEAR = '\u001b[H\u001b[2J\u001b[3J';

export function print({ text, json }: View, { json: asJson }: ConnectionFlags, shell: Shell): void {
  shell.out(asJson ? JSON.stringify(json) : text);
}

/** Waits, or ends at once when the signal aborts. */
export async function pauseOrStop(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  // Not `aborted`: the listeners that it adds to the signal would accumulate.
  await new Promise<void>((resolve) => {
    const timer = setTimeout(over, ms);
    signal.addEventListener('abort', over);
    function over(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      resolve();
    }
  });
}

/** Adds the flag that skips the question to a destructive command. */
export function addYesFlag(command: Command): Command {
  return command.option('--yes', 'do not ask for confirmation');
}

/** Asks before something is destroyed. @throws CommandError if the answer is not yes, or if there is no one to ask. */
export async function confirm(what: string, yes: true | undefined, shell: Shell): Promise<void> {
  if (yes) return;
  const answer = shell.terminal ? await shell.ask(`${what}\nType yes to continue: `) : undefined;
  if (answer === undefined) throw new CommandError('usage', `${what} Add --yes to confirm.`);
  if (answer.trim().toLowerCase() !== 'yes') throw new CommandError('failed', 'not confirmed; nothing was changed');
}
