import type { Command } from 'commander';
import type { Follower } from '../../admin/follow.ts';
import { type Shell, stopSignal } from '../../shell.ts';
import type { ConnectionFlags } from '../connection.ts';
import { pauseOrStop } from './run.ts';

export interface WaitFlags extends ConnectionFlags {
  /** False with `--no-wait`. */
  readonly wait: boolean;
}

/** How often to look whether something is over. */
const LOOK_MS = 500;

/** Gives a command that begins something long the flag not to wait for its end. */
export function addWaitFlag(command: Command): Command {
  return command.option(
    '--no-wait',
    'return once the change has started; it continues in the background, as it also does after Ctrl-C',
  );
}

/** Does something while the person looks on; Ctrl-C ends the looking, nothing else. */
export async function lookingOn<T>(shell: Shell, work: (follower: Follower) => Promise<T>): Promise<T> {
  const { signal, dispose } = stopSignal();
  try {
    return await work({ say: shell.err, pause: () => pauseOrStop(LOOK_MS, signal), signal });
  } finally {
    dispose();
  }
}
