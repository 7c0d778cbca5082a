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
    .summary('Waits until a task is finished, or until other parties arrive.')
    .description(
      'Waits until a task is finished, or until other parties arrive. While a command runs under "remora lock run NAME", ' +
        '"barrier wait NAME" waits.',
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
    .summary('Waits at a barrier until it opens.')
    .description(
      'Waits until nobody holds the lock of that name. With --parties, waits until that many callers wait, then all ' +
        'continue together. Exits with 75 if --wait expires first.',
    )
    .argument('<name>', 'name of the barrier', readLockName)
    .option('--wait <duration>', 'give up after this time (default: wait forever)', flagReader(durationMs()))
    .option(
      '--parties <number>',
      'total number of callers that must wait before all continue',
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

/** Once all parties were there, the barrier has been passed, whatever happens next: the others continue as well. */
export async function pass(
  client: Pick<RemoraClient, 'barrier' | 'doubleBarrier'>,
  { name, flags, shell }: { readonly name: string; readonly flags: WaitFlags; readonly shell: Pick<Shell, 'err'> },
): Promise<void> {
  const { namespace, parties } = flags;
  if (parties === undefined) return client.barrier(name, { namespace }).wait(waitOf(flags));
  const stay = await client.doubleBarrier(name, { namespace, parties }).enter(waitOf(flags));
  // Waits until all have left: a party that enters again would be counted with those that are still there.
  await stay.leave(waitOf(flags)).catch((error: unknown) => {
    shell.err(
      `remora: could not confirm that all parties left ${printableText(name)}; waiting again may count them: ${String(error)}`,
    );
  });
}

function runCommand(shell: Shell): Command {
  const command = new Command('run')
    .summary('Runs a command together with other parties.')
    .description(
      "Waits for the other parties, runs a command, and returns when all parties' commands have ended. Exits with the code of " +
        'the command; with 75 if the parties did not arrive in time, 76 if the barrier stopped counting this one, and 126, 127, ' +
        `128+n as "remora lock run" does. ${COMMAND_PROMISE}`,
    )
    .argument('<name>', 'name of the barrier', readLockName)
    .argument('<command...>', 'the command and its arguments, after "--"')
    .requiredOption(
      '--parties <number>',
      'number of parties, including this one',
      flagReader(int({ min: 1, max: SHARERS_MAX })),
    )
    .option(
      '--wait <duration>',
      'give up if the others have not arrived after this time (default: wait forever)',
      flagReader(durationMs()),
    )
    .option(
      '--ttl <duration>',
      'how long the barrier counts this party after its process dies (default: 10s)',
      flagReader(durationMs({ min: 1000 })),
    )
    .option(
      '--kill-after <duration>',
      'time from SIGTERM to SIGKILL once the barrier no longer counts this party (default: 1s)',
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
          lost: `${printableText(name)} no longer counts this party`,
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

/** Leaves together with the other parties. */
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
    .description('Lets all waiters continue: takes the lock from its holders, without asking them.')
    .argument('<name>', 'name of the barrier', readLockName)
    .option('--reason <text>', 'reason, recorded with the lock')
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
    throw new CommandError('lockBusy', `${printableText(name)} did not open within ${formatDurationMs(wait)}`, {
      cause: error,
    });
  }
}
