import { Command } from 'commander';
import { adminCommand } from './commands/admin/admin.ts';
import { barrierCommand } from './commands/barrier.ts';
import { devCommand } from './commands/dev.ts';
import { electionCommand } from './commands/election.ts';
import { kvCommand } from './commands/kv.ts';
import { lockCommand } from './commands/lock.ts';
import { nodeCommand } from './commands/node.ts';
import { sessionCommand } from './commands/session.ts';
import { statusCommand } from './commands/status.ts';
import { EXIT_CODES } from './exit-codes.ts';
import type { StartNode } from './node/running-node.ts';
import { reportFailure, type Shell } from './shell.ts';
import { VERSION } from './version.ts';

/** The whole command line. */
export function createProgram(shell: Shell, loadStartNode: () => Promise<StartNode>): Command {
  const program = new Command('remora')
    .description('A strongly consistent key-value store with distributed locks.')
    .version(VERSION, '-V, --version')
    .configureOutput({
      writeOut: (text) => shell.out(text.trimEnd()),
      writeErr: (text) => shell.err(text.trimEnd()),
    })
    .showSuggestionAfterError()
    .addHelpText('after', `\nExit codes:\n${exitCodeTable()}`)
    .addCommand(devCommand(shell))
    .addCommand(nodeCommand({ shell, loadStartNode }))
    .addCommand(kvCommand(shell))
    .addCommand(lockCommand(shell))
    .addCommand(electionCommand(shell))
    .addCommand(barrierCommand(shell))
    .addCommand(sessionCommand(shell))
    .addCommand(statusCommand(shell))
    .addCommand(adminCommand(shell));
  for (const command of withSubcommands(program)) {
    // Errors come back to the caller, and each command says how to see its help.
    if (command !== program) command.copyInheritedSettings(program);
    command.exitOverride().showHelpAfterError(`(see ${pathOf(command)} --help)`);
  }
  return program;
}

/** Runs the command line and gives the exit code. */
export async function runCommandLine(
  argv: readonly string[],
  shell: Shell,
  loadStartNode: () => Promise<StartNode>,
): Promise<number> {
  try {
    await createProgram(shell, loadStartNode).parseAsync([...argv], { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return reportFailure(error, shell);
  }
}

function* withSubcommands(command: Command): Generator<Command> {
  yield command;
  for (const child of command.commands) yield* withSubcommands(child);
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function exitCodeTable(): string {
  return Object.values(EXIT_CODES)
    .map(({ code, means }) => `  ${String(code).padStart(3)}  ${means}`)
    .join('\n');
}
