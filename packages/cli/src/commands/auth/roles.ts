import { Command } from 'commander';
import { printableText } from '../../format/bytes-text.ts';
import type { Shell } from '../../shell.ts';
import { addYesFlag, confirm } from '../admin/run.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import { jsonRole, rolesTable } from './permissions-text.ts';
import { changeAuth, showAuth } from './run-auth.ts';

export function roleCommand(shell: Shell): Command {
  return new Command('role')
    .description('Manages roles. `remora auth grant` gives them permissions.')
    .addHelpText('after', examples('remora auth role add shop', 'remora auth role ls', 'remora auth role show shop'))
    .addCommand(addCommand(shell))
    .addCommand(deleteCommand(shell))
    .addCommand(listCommand(shell))
    .addCommand(showCommand(shell));
}

function addCommand(shell: Shell): Command {
  const command = new Command('add')
    .description('Adds a role without permissions.')
    .argument('<name>')
    .addHelpText('after', examples('remora auth role add shop'));
  return addConnectionFlags(command, shell).action((name: string, flags: ConnectionFlags) =>
    changeAuth(flags, shell, {
      change: { $case: 'addRole', value: name },
      done: { text: `added the role ${printableText(name)}`, json: { role: name } },
    }),
  );
}

interface DeleteFlags extends ConnectionFlags {
  readonly yes?: true;
}

function deleteCommand(shell: Shell): Command {
  const command = new Command('delete')
    .alias('del')
    .description('Deletes a role and its permissions, and takes it from all users.')
    .argument('<name>')
    .addHelpText('after', examples('remora auth role delete shop'));
  return addConnectionFlags(addYesFlag(command), shell).action(async (name: string, flags: DeleteFlags) => {
    await confirm(`The role ${printableText(name)} will be deleted, and taken from all users.`, flags.yes, shell);
    await changeAuth(flags, shell, {
      change: { $case: 'deleteRole', value: name },
      done: { text: `deleted the role ${printableText(name)}`, json: { role: name } },
    });
  });
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description('Lists roles and their permissions, as `remora auth revoke` takes them.')
    .addHelpText('after', examples('remora auth role ls', 'remora auth role ls --json'));
  return addConnectionFlags(command, shell).action((flags: ConnectionFlags) =>
    showAuth(flags, shell, async (client) => {
      const roles = await client.roles();
      return { text: rolesTable(roles), json: { roles: roles.map(jsonRole) } };
    }),
  );
}

function showCommand(shell: Shell): Command {
  const command = new Command('show')
    .description('Shows the permissions of a role. Users may look at their own roles.')
    .argument('<name>')
    .addHelpText('after', examples('remora auth role show shop'));
  return addConnectionFlags(command, shell).action((name: string, flags: ConnectionFlags) =>
    showAuth(flags, shell, async (client) => {
      const role = await client.role(name);
      return { text: rolesTable([role]), json: jsonRole(role) };
    }),
  );
}
