import { formatDurationMs, suggest } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import { Command } from 'commander';
import { CommandError } from '../../exit-codes.ts';
import { printableText } from '../../format/bytes-text.ts';
import { table } from '../../format/table.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, durationOption, examples } from '../connection.ts';
import { addViewFlags, print, show, type View, type ViewFlags, withAdmin } from './run.ts';

const PAUSE = {
  desc: 'how long the scheduler is paused',
  defaultMs: 3_600_000,
  limits: { min: 1_000, max: 30 * 24 * 3_600_000 },
};

export function schedulersCommand(shell: Shell): Command {
  return new Command('schedulers')
    .summary('Shows and pauses the schedulers.')
    .description(
      'Shows and pauses schedulers. Each scheduler balances one aspect of the cluster. Schedulers do not perform repairs.',
    )
    .addHelpText('after', examples('remora admin schedulers', 'remora admin schedulers pause leader-load --for 30m'))
    .addCommand(listCommand(shell), { isDefault: true })
    .addCommand(pauseCommand(shell))
    .addCommand(resumeCommand(shell))
    .addCommand(setCommand(shell));
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description('Lists the schedulers: whether they are active, and what each reported on its last run.')
    .addHelpText('after', examples('remora admin schedulers', 'remora admin schedulers ls --watch'));
  return addViewFlags(command, shell).action((flags: ViewFlags) =>
    show(flags, shell, async (client) => schedulersView(await client.schedulers())),
  );
}

interface PauseFlags extends ConnectionFlags {
  readonly for: number;
}

function pauseCommand(shell: Shell): Command {
  const command = new Command('pause')
    .summary('Pauses a scheduler.')
    .description('Pauses a scheduler: it starts no operators for a time. Running operators and repairs continue.')
    .argument('<scheduler>', 'name of the scheduler, or all')
    .addOption(durationOption('--for', PAUSE))
    .addHelpText(
      'after',
      examples('remora admin schedulers pause leader-load --for 30m', 'remora admin schedulers pause all --for 2h'),
    );
  return addConnectionFlags(command, shell).action((name: string, flags: PauseFlags) =>
    pause(name, flags.for, flags, shell),
  );
}

function resumeCommand(shell: Shell): Command {
  const command = new Command('resume')
    .description('Resumes a paused scheduler.')
    .argument('<scheduler>', 'name of the scheduler, or all')
    .addHelpText('after', examples('remora admin schedulers resume leader-load', 'remora admin schedulers resume all'));
  return addConnectionFlags(command, shell).action((name: string, flags: ConnectionFlags) =>
    pause(name, 0, flags, shell),
  );
}

function pause(name: string, forMs: number, flags: ConnectionFlags, shell: Shell): Promise<void> {
  return withAdmin(flags, async (client) => {
    let schedulers = await client.schedulers();
    const names = name === 'all' ? schedulers.map((scheduler) => scheduler.name) : [find(schedulers, name).name];
    for (const each of names) schedulers = await client.pauseScheduler(each, forMs);
    print(schedulersView(schedulers), flags, shell);
  });
}

function setCommand(shell: Shell): Command {
  const command = new Command('set')
    .summary('Changes a setting that a scheduler uses.')
    .description(
      'Changes a setting that a scheduler uses. These are settings of the cluster, which several schedulers may share: ' +
        '`settings describe` explains them.',
    )
    .argument('<scheduler>')
    .argument('<setting>')
    .argument('<value>')
    .addHelpText('after', examples('remora admin schedulers set leader-count count-tolerance-percent 10'));
  return addConnectionFlags(command, shell).action(
    (name: string, setting: string, value: string, flags: ConnectionFlags) =>
      withAdmin(flags, async (client) => {
        const { settings } = find(await client.schedulers(), name);
        if (!settings.includes(setting)) {
          throw new CommandError('failed', `${name} has no setting "${setting}"; it uses ${settings.join(', ')}`);
        }
        const changed = (await client.setSetting(setting, value)).find((each) => each.name === setting);
        print({ text: `${setting} = ${changed?.value ?? value}`, json: changed ?? null }, flags, shell);
      }),
  );
}

function find(schedulers: readonly admin.Scheduler[], name: string): admin.Scheduler {
  const found = schedulers.find((scheduler) => scheduler.name === name);
  if (found !== undefined) return found;
  const names = schedulers.map((scheduler) => scheduler.name);
  const meant = suggest(name, names);
  const hint = meant === undefined ? '.' : `, did you mean ${meant}?`;
  throw new CommandError(
    'failed',
    `unknown scheduler "${printableText(name)}"${hint} The schedulers are: ${names.join(', ')}`,
  );
}

function schedulersView(schedulers: readonly admin.Scheduler[]): View {
  const rows = schedulers.map(({ name, pausedMs, last, settings }) => [
    name,
    pausedMs < 0 ? 'runs' : `paused for ${formatDurationMs(Math.ceil(pausedMs / 1_000) * 1_000)}`,
    last,
    settings.join(' '),
  ]);
  return { text: table(['SCHEDULER', 'STATE', 'SAYS', 'SETTINGS'], rows), json: { schedulers } };
}
