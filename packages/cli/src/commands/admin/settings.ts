import { suggest } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import { CommandError } from '../../exit-codes.ts';
import { printableText } from '../../format/bytes-text.ts';
import { table } from '../../format/table.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import { addViewFlags, print, show, type View, type ViewFlags, withAdmin } from './run.ts';

export function settingsCommand(shell: Shell): Command {
  return new Command('settings')
    .summary("Shows and changes the cluster's settings.")
    .description(
      "Shows and changes the cluster's settings. A change applies to all nodes at once and survives restarts.",
    )
    .addHelpText('after', examples('remora admin settings', 'remora admin settings set down-after 5m'))
    .addCommand(listCommand(shell), { isDefault: true })
    .addCommand(getCommand(shell))
    .addCommand(setCommand(shell))
    .addCommand(resetCommand(shell))
    .addCommand(describeCommand(shell));
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description('Lists all settings and their values.')
    .addHelpText('after', examples('remora admin settings', 'remora admin settings --json'));
  return addViewFlags(command, shell).action((flags: ViewFlags) =>
    show(flags, shell, async (client) => settingsView(await client.settings())),
  );
}

function getCommand(shell: Shell): Command {
  const command = new Command('get')
    .description('Prints the value of one setting.')
    .argument('<name>')
    .addHelpText('after', examples('remora admin settings get down-after'));
  return addConnectionFlags(command, shell).action((name: string, flags: ConnectionFlags) =>
    withAdmin(flags, async (client) => {
      const setting = find(await client.settings(), name);
      print({ text: setting.value, json: setting }, flags, shell);
    }),
  );
}

function setCommand(shell: Shell): Command {
  const command = new Command('set')
    .description('Changes one setting.')
    .argument('<name>')
    .argument('<value>')
    .addHelpText('after', examples('remora admin settings set down-after 5m'));
  return addConnectionFlags(command, shell).action((name: string, value: string, flags: ConnectionFlags) => {
    if (value === '')
      throw new CommandError('usage', 'the value is empty; use `settings reset` to restore the default');
    return change(name, value, flags, shell);
  });
}

function resetCommand(shell: Shell): Command {
  const command = new Command('reset')
    .description('Resets one setting to its default.')
    .argument('<name>')
    .addHelpText('after', examples('remora admin settings reset down-after'));
  return addConnectionFlags(command, shell).action((name: string, flags: ConnectionFlags) =>
    change(name, '', flags, shell),
  );
}

function describeCommand(shell: Shell): Command {
  const command = new Command('describe')
    .description('Explains one setting, or all of them.')
    .argument('[name]')
    .addHelpText('after', examples('remora admin settings describe', 'remora admin settings describe down-after'));
  return addConnectionFlags(command, shell).action((name: string | undefined, flags: ConnectionFlags) =>
    withAdmin(flags, async (client) => {
      const settings = await client.settings();
      const wanted = name === undefined ? settings : [find(settings, name)];
      print({ text: wanted.map(describe).join('\n\n'), json: wanted }, flags, shell);
    }),
  );
}

function change(name: string, value: string, flags: ConnectionFlags, shell: Shell): Promise<void> {
  return withAdmin(flags, async (client) => {
    const setting = find(await client.setSetting(name, value), name);
    print({ text: `${setting.name} = ${setting.value}`, json: setting }, flags, shell);
  });
}

function find(settings: readonly admin.Setting[], name: string): admin.Setting {
  const found = settings.find((setting) => setting.name === name);
  if (found !== undefined) return found;
  const names = settings.map((setting) => setting.name);
  const meant = suggest(name, names);
  const hint = meant === undefined ? '.' : `, did you mean ${meant}?`;
  throw new CommandError(
    'failed',
    `unknown setting "${printableText(name)}"${hint} The settings are: ${names.join(', ')}`,
  );
}

function settingsView(settings: readonly admin.Setting[]): View {
  const rows = settings.map(({ name, value, defaultValue }) => [
    name,
    value,
    value === defaultValue ? '' : defaultValue,
  ]);
  return { text: table(['NAME', 'VALUE', 'DEFAULT'], rows), json: { settings } };
}

function describe({ name, value, defaultValue, placeholder, description }: admin.Setting): string {
  return `${name} ${placeholder}\n  ${description}\n  Value: ${value}. Default: ${defaultValue}.`;
}
