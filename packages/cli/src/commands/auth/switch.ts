import { Command } from 'commander';
import { counted } from '../../format/sizes.ts';
import type { Shell } from '../../shell.ts';
import { addYesFlag, confirm } from '../admin/run.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import { changeAuth, showAuth } from './run-auth.ts';

export function statusCommand(shell: Shell): Command {
  const command = new Command('status')
    .description('Shows whether authentication is on, and how many users and roles there are.')
    .addHelpText('after', examples('remora auth status', 'remora auth status --json'));
  return addConnectionFlags(command, shell).action((flags: ConnectionFlags) =>
    showAuth(flags, shell, async (client) => {
      const { enabled, revision, users, roles } = await client.status();
      const text = `authentication is ${enabled ? 'on' : 'off'}; ${counted(users, 'user')}, ${counted(roles, 'role')}`;
      return { text, json: { enabled, revision, users, roles } };
    }),
  );
}

export function enableCommand(shell: Shell): Command {
  const command = new Command('enable')
    .summary('Switches authentication on.')
    .description(
      'Switches authentication on: from then on, users may do what their roles allow, and callers without a user may do ' +
        'nothing. Needs a user root with the role root.',
    )
    .addHelpText(
      'after',
      examples('remora auth user add root', 'remora auth user grant-role root root', 'remora auth enable'),
    );
  return addConnectionFlags(command, shell).action((flags: ConnectionFlags) =>
    changeAuth(flags, shell, {
      change: { $case: 'enable', value: {} },
      done: { text: 'authentication is on', json: { enabled: true } },
    }),
  );
}

interface DisableFlags extends ConnectionFlags {
  readonly yes?: true;
}

export function disableCommand(shell: Shell): Command {
  const command = new Command('disable')
    .summary('Switches authentication off.')
    .description(
      'Switches authentication off: everybody who reaches a port may do everything. Users, roles and permissions are kept.',
    )
    .addHelpText('after', examples('remora auth disable', 'remora auth disable --user root --yes'));
  return addConnectionFlags(addYesFlag(command), shell).action(async (flags: DisableFlags) => {
    await confirm('Everybody who reaches a port will be able to do everything.', flags.yes, shell);
    await changeAuth(flags, shell, {
      change: { $case: 'disable', value: {} },
      done: { text: 'authentication is off', json: { enabled: false } },
    });
  });
}
