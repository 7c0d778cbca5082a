import { suggest } from '@remora/base';
import { Command } from 'commander';
import type { NodeCommandDeps } from './commands/node.ts';
import { EXIT_CODES } from './exit-codes.ts';
import type { StartNode } from './node/running-node.ts';
import { guarded, reportFailure, type Shell } from './shell.ts';
import { VERSION } from './version.ts';

/**
 * The commands by name, in the order of the help. A command line that names a command loads only that one, because
 * loading all of them takes as long as most commands run.
 */
const COMMANDS: Readonly<Record<string, (deps: NodeCommandDeps) => Promise<Command>>> = {
  dev: async ({ shell }) => (await import('./commands/dev.ts')).devCommand(shell),
  node: async (deps) => (await import('./commands/node.ts')).nodeCommand(deps),
  kv: async ({ shell }) => (await import('./commands/kv.ts')).kvCommand(shell),
  lock: async ({ shell }) => (await import('./commands/lock.ts')).lockCommand(shell),
  election: async ({ shell }) => (await import('./commands/election.ts')).electionCommand(shell),
  barrier: async ({ shell }) => (await import('./commands/barrier.ts')).barrierCommand(shell),
  session: async ({ shell }) => (await import('./commands/session.ts')).sessionCommand(shell),
  status: async ({ shell }) => (await import('./commands/status.ts')).statusCommand(shell),
  cert: async ({ shell }) => (await import('./commands/cert.ts')).certCommand(shell),
  auth: async ({ shell }) => (await import('./commands/auth/auth.ts')).authCommand(shell),
  admin: async ({ shell }) => (await import('./commands/admin/admin.ts')).adminCommand(shell),
};

/** The command line with the named command; with all commands if there is no such name, as in `remora --help`. */
export async function createProgram(deps: NodeCommandDeps, name = ''): Promise<Command> {
  const { shell } = deps;
  const program = new Command('remora')
    .description('A strongly consistent key-value store with distributed locks.')
    .version(VERSION, '-V, --version')
    .configureOutput({
      writeOut: (text) => shell.out(text.trimEnd()),
      writeErr: (text) => shell.err(text.trimEnd()),
    })
    .showSuggestionAfterError()
    .addHelpText('after', `\nExit codes:\n${exitCodeTable()}`);
  const only = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const makers = only === undefined ? Object.values(COMMANDS) : [only];
  for (const command of await Promise.all(makers.map((make) => make(deps)))) program.addCommand(command);
  for (const command of withSubcommands(program)) {
    // Errors are thrown to the caller, and each command says how to see its help.
    if (command !== program) command.copyInheritedSettings(program);
    command.exitOverride().showHelpAfterError(`(see ${pathOf(command)} --help)`);
    command.hook('preSubcommand', refuseUnknown);
  }
  return program;
}

/** Runs the command line and returns the exit code. */
export async function runCommandLine(
  argv: readonly string[],
  given: Shell,
  loadStartNode: () => Promise<StartNode>,
): Promise<number> {
  const shell = guarded(given);
  try {
    const program = await createProgram({ shell, loadStartNode }, argv[0]);
    await program.parseAsync([...argv], { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    return reportFailure(error, shell);
  }
}

function* withSubcommands(command: Command): Generator<Command> {
  yield command;
  for (const child of command.commands) yield* withSubcommands(child);
}

/** A word that is not a subcommand would become an argument of the default subcommand. */
function refuseUnknown(command: Command): void {
  const [word] = command.args;
  const names = command.commands.flatMap((child) => [child.name(), ...child.aliases()]);
  if (word === undefined || word.startsWith('-') || names.includes(word)) return;
  const meant = suggest(word, names);
  const hint = meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
  command.error(`error: unknown command '${word}'${hint}`, { code: 'commander.unknownCommand' });
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function exitCodeTable(): string {
  return Object.values(EXIT_CODES)
    .map(({ code, means }) => `  ${String(code).padStart(3)}  ${means}`)
    .join('\n');
}
