/** The commands of scenarios. Each reads its arguments, does one thing to the world, and tells what happened. */
import type { Command } from './command.ts';
import type { Args } from './datadriven.ts';
import { HOST_COMMANDS } from './host-commands.ts';
import { INPUT_COMMANDS } from './input-commands.ts';
import { VIEW_COMMANDS } from './view-commands.ts';
import type { World } from './world.ts';

const COMMANDS: ReadonlyMap<string, Command> = new Map([...INPUT_COMMANDS, ...HOST_COMMANDS, ...VIEW_COMMANDS]);

/** Runs one command in the world and returns what happened. */
export function runCommand(world: World, args: Args): string {
  const command = COMMANDS.get(args.command);
  if (command === undefined) throw new Error(`there is no command '${args.command}'`);
  command(world, args);
  return world.takeLines();
}
