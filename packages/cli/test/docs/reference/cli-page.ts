import type { Command, Option } from 'commander';
import { code, table } from './table.ts';

/** These are the same for every command that connects to a cluster. */
const SHARED = [
  ...['--endpoints', '--user', '--password-file', '--token-file', '--allow-plain-text'],
  ...['--timeout', '--no-discover', '--json'],
];
/** The schema of options has a page of its own. */
const ELSEWHERE = new Map([['remora node', 'node-options.md']]);

/** Every command with its arguments, options and examples, as `--help` has them. */
export function cliPage(program: Command): string {
  const all = [...withSubcommands(program)].filter((command) => command !== program && command.name() !== 'help');
  const shared = all.flatMap(({ options }) => options).filter(isShared);
  const once = SHARED.flatMap((flag) => shared.find(({ long }) => long === flag) ?? []);
  const sections = all.map((command) => commandSection(command));
  return `# Command line

Every command prints its help with \`--help\`. [Exit codes](errors.md#exit-codes) are stable. Durations are numbers with a unit: \`250ms\`,
\`5s\`, \`1m30s\`.

## Options of all commands that connect

${optionTable(once)}

${sections.join('\n\n')}
`;
}

function commandSection(command: Command): string {
  const path = pathOf(command);
  const own = command.options.filter((option) => !option.hidden && !isShared(option));
  const parts = [`## ${path}`, escaped(command.description())];
  if (command.commands.length > 0) {
    const rows = command.commands
      .filter((child) => child.name() !== 'help')
      .map((child) => [
        `[\`${pathOf(child)}\`](#${pathOf(child).replaceAll(' ', '-')})`,
        escaped(firstSentence(child.description())),
      ]);
    return [...parts, table(['Command', 'What it does'], rows)].join('\n\n');
  }
  parts.push(`\`\`\`text\n${path} ${command.usage()}\n\`\`\``);
  const described = command.registeredArguments.filter(({ description }) => description !== '');
  if (described.length > 0) {
    parts.push(
      table(
        ['Argument', 'Meaning'],
        described.map((each) => [code(each.name()), escaped(each.description)]),
      ),
    );
  }
  const elsewhere = ELSEWHERE.get(path);
  if (elsewhere !== undefined) parts.push(`Options: [${elsewhere}](${elsewhere}).`);
  else if (own.length > 0) parts.push(optionTable(own));
  const examples = examplesOf(command);
  if (examples.length > 0) parts.push(`Examples:\n\n\`\`\`sh no-run\n${examples.join('\n')}\n\`\`\``);
  return parts.join('\n\n');
}

function optionTable(options: readonly Option[]): string {
  const rows = options.map((option) => [code(option.flags), escaped(option.description), defaultOf(option)]);
  return table(['Option', 'Meaning', 'Default'], rows);
}

function defaultOf({ defaultValue, defaultValueDescription, negate }: Option): string {
  if (defaultValueDescription !== undefined) return code(defaultValueDescription);
  return defaultValue === undefined || negate || defaultValue === false ? '' : code(String(defaultValue));
}

/** What help prints behind the options, without its titles. */
function examplesOf(command: Command): readonly string[] {
  let text = '';
  const { writeOut } = command.configureOutput();
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  if (writeOut !== undefined) command.configureOutput({ writeOut });
  const whole = text.replaceAll(/ \\\n\s*/g, ' ');
  return whole.split('\n').flatMap((line) => (line.trim().startsWith('$ ') ? [line.trim().slice(2)] : []));
}

function isShared(option: Option): boolean {
  return option.long !== undefined && SHARED.includes(option.long ?? '');
}

function firstSentence(text: string): string {
  return /^.*?[.](?= |$)/s.exec(text)?.[0] ?? text;
}

/** Placeholders in angle brackets are no HTML. */
function escaped(text: string): string {
  return text.replaceAll('<', '&lt;');
}

function* withSubcommands(command: Command): Generator<Command> {
  yield command;
  for (const child of command.commands) yield* withSubcommands(child);
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
