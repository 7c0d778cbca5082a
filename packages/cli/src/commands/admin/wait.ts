import type { Command } from 'commander';
import type { Follower } from '../../admin/follow.ts';
import { type Shell, stopSignal } from '../../shell.ts';
import type { ConnectionFlags } from '../connection.ts';
import { pauseOrStop } from './run.ts';

export interface WaitFlags extends ConnectionFlags {
  /** False with `--no-wait`. */
  readonly wait: boolean;
}

/** The interval of the looks. */
const LOOK_MS = 500;

/** Adds the flag not to wait for the end to a command that begins something long. */
export function addWaitFlag(command: Command): Command {
  return command.option(
    '--no-wait',
    'return once the change has started; it continues in the background, as it also does after Ctrl-C',
  );
}

/** Runs `work` while the person watches; Ctrl-C ends only the watching. */
export async function lookingOn<T>(shell: Shell, work: (follower: Follower) => Promise<T>): Promise<T> {
  const { signal, dispose } = stopSignal();
  try {
    return await work({ say: shell.err, pause: () => pauseOrStop(LOOK_MS, signal), signal });
  } finally {
    dispose();
  }
}
