import { durationMs, formatDurationMs, int, ServiceError } from '@remora/base';
import { SHARERS_MAX } from '@remora/lock';
import { Command } from 'commander';
import type { BarrierStay, DoubleBarrier, RemoraClient } from 'remora';
import { CommandError } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';
import type { Shell } from '../shell.ts';
import {
  addConnectionFlags,
  type ConnectionFlags,
  examples,
  flagReader,
  readLockName,
  withClient,
} from './connection.ts';
import { COMMAND_PROMISE, type Holding, runChild } from './run-child.ts';

interface WaitFlags extends ConnectionFlags {
  readonly namespace: string;
  readonly wait?: number;
  readonly parties?: number;
}

interface RunFlags extends WaitFlags {
  readonly parties: number;
  readonly ttl?: number;
  readonly killAfter?: number;
}

interface LiftFlags extends ConnectionFlags {
  readonly namespace: string;
  readonly reason?: string;
}

export function barrierCommand(shell: Shell): Command {
  return new Command('barrier')
    .description(
      'Waits until something is done, or until others are there. What is done under "remora lock run NAME" holds up all ' +
        'who wait at the barrier of that name.',
    )
    .addHelpText(
      'after',
      examples(
        'remora lock run migration -- ./migrate',
        'remora barrier wait --wait 10m migration && ./serve',
        'remora barrier run --parties 3 round -- ./work',
      ),
    )
    .enablePositionalOptions()
    .addCommand(waitCommand(shell))
    .addCommand(runCommand(shell))
    .addCommand(liftCommand(shell));
}

function namespaced(command: Command, shell: Shell): Command {
  return addConnectionFlags(command.option('--namespace <name>', 'namespace of the barrier', 'default'), shell);
}

function waitCommand(shell: Shell): Command {
  const command = new Command('wait')
    .description(
      'Waits until nobody holds the lock of that name, or with --parties until so many wait: all go on together. Exit code ' +
        '75 when that was not in time.',
    )
    .argument('<name>', '', readLockName)
    .option('--wait <duration>', 'how long at most; as long as it takes unless given', flagReader(durationMs()))
    .option(
      '--parties <number>',
      'waits for others who do the same, so many in all',
      flagReader(int({ min: 1, max: SHARERS_MAX })),
    )
    .addHelpText(
      'after',
      examples('remora barrier wait --wait 10m migration && ./serve', 'remora barrier wait --parties 3 round'),
    );
  return namespaced(command, shell).action((name: string, flags: WaitFlags) =>
    withClient(flags, async (client) => {
      await inTime(pass(client, { name, flags, shell }), name, flags);
      shell.out(flags.json ? JSON.stringify({ passed: true }) : `passed ${printableText(name)}`);
    }),
  );
}

/** Once all were there it has passed, whatever comes of what follows: the others go on as well. */
export async function pass(
  client: Pick<RemoraClient, 'barrier' | 'doubleBarrier'>,
  { name, flags, shell }: { readonly name: string; readonly flags: WaitFlags; readonly shell: Pick<Shell, 'err'> },
): Promise<void> {
  const { namespace, parties } = flags;
  if (parties === undefined) return client.barrier(name, { namespace }).wait(waitOf(flags));
  const stay = await client.doubleBarrier(name, { namespace, parties }).enter(waitOf(flags));
  // Until all have heard of it: who waits again would be counted with those who are still there.
  await stay.leave(waitOf(flags)).catch((error: unknown) => {
    shell.err(
      `remora: others are perhaps still at ${printableText(name)}, and would be counted with who waits again: ${String(error)}`,
    );
  });
}

function runCommand(shell: Shell): Command {
  const command = new Command('run')
    .description(
      'Runs a command when so many are there, and ends when the commands of all have ended. Its exit code is the ' +
        "command's; 75 when the others were not there in time, 76 when it was counted no longer, 126, 127 and 128+n as " +
        `of "remora lock run". ${COMMAND_PROMISE}`,
    )
    .argument('<name>', '', readLockName)
    .argument('<command...>', 'after "--", so that its flags are its own')
    .requiredOption('--parties <number>', 'how many', flagReader(int({ min: 1, max: SHARERS_MAX })))
    .option('--wait <duration>', 'how long to wait for the others to come', flagReader(durationMs()))
    .option(
      '--ttl <duration>',
      'how long this one is counted when its process dies (default: 10s)',
      flagReader(durationMs({ min: 1000 })),
    )
    .option(
      '--kill-after <duration>',
      'from SIGTERM to SIGKILL when it is counted no longer (default: 1s)',
      flagReader(durationMs()),
    )
    .addHelpText('after', examples('remora barrier run --parties 3 round -- ./work'));
  return namespaced(command, shell).action(async (name: string, argv: string[], flags: RunFlags) => {
    process.exitCode = await withClient(flags, (client) => {
      const { namespace, parties, killAfter: killAfterMs } = flags;
      const barrier = client.doubleBarrier(name, { namespace, parties });
      return runChild((signal) => inTime(enter(barrier, { ...waitOf(flags), signal }), name, flags), {
        ...{
          what: printableText(name),
          lost: `${printableText(name)} counts it no longer`,
          argv,
          killAfterMs,
          ttlMs: flags.ttl,
          shell,
        },
        env: () => ({ REMORA_BARRIER_NAME: name }),
      });
    });
  });
}

/** Leaves together with the others. */
async function enter(barrier: DoubleBarrier, options: Parameters<DoubleBarrier['enter']>[0]): Promise<Holding> {
  const stay: BarrierStay = await barrier.enter(options);
  return {
    get signal() {
      return stay.signal;
    },
    part: (signal) => (stay.state === 'lost' ? Promise.resolve() : stay.leave({ signal })),
    release: () => stay[Symbol.asyncDispose](),
  };
}

function liftCommand(shell: Shell): Command {
  const command = new Command('lift')
    .description('Lets all go on who wait, by taking the lock from whoever holds it, who is not asked.')
    .argument('<name>', '', readLockName)
    .option('--reason <text>', 'why; stays on record with the lock')
    .addHelpText('after', examples('remora barrier lift --reason "the migration was given up" migration'));
  return namespaced(command, shell).action((name: string, flags: LiftFlags) =>
    withClient(flags, async (client) => {
      const { namespace, reason = '' } = flags;
      const lifted = await client.barrier(name, { namespace }).lift({ reason });
      if (flags.json) return shell.out(JSON.stringify({ lifted }));
      shell.out(lifted ? `lifted ${printableText(name)}` : `nobody held ${printableText(name)}`);
    }),
  );
}

function waitOf({ wait }: WaitFlags): { readonly wait?: number } {
  return wait === undefined ? {} : { wait };
}

async function inTime<T>(waiting: Promise<T>, name: string, { wait = 0 }: WaitFlags): Promise<T> {
  try {
    return await waiting;
  } catch (error) {
    const late = error instanceof ServiceError && (error.code === 'LOCK_TIMEOUT' || error.code === 'LOCK_BUSY');
    if (!late) throw error;
    throw new CommandError('lockBusy', `${printableText(name)} was not passed within ${formatDurationMs(wait)}`, {
      cause: error,
    });
  }
}
