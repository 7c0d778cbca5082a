import type { auth } from '@remora/protocol/remora';
import { Command } from 'commander';
import { printableText } from '../../format/bytes-text.ts';
import { table } from '../../format/table.ts';
import type { Shell } from '../../shell.ts';
import { addYesFlag, confirm } from '../admin/run.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import { addNewPasswordFlags, type NewPasswordFlags, newPassword } from './new-password.ts';
import { changeAuth, showAuth } from './run-auth.ts';

export function userCommand(shell: Shell): Command {
  return new Command('user')
    .description('Manages users, their passwords and their roles.')
    .addHelpText(
      'after',
      examples('remora auth user add alice', 'remora auth user grant-role alice shop', 'remora auth user ls'),
    )
    .addCommand(addCommand(shell))
    .addCommand(deleteCommand(shell))
    .addCommand(listCommand(shell))
    .addCommand(showCommand(shell))
    .addCommand(passwordCommand(shell))
    .addCommand(roleChange(shell, GRANT))
    .addCommand(roleChange(shell, REVOKE));
}

interface AddFlags extends ConnectionFlags, NewPasswordFlags {
  readonly password: boolean;
}

function addCommand(shell: Shell): Command {
  const command = new Command('add')
    .description('Adds a user. Asks for its password, unless that is in a file, a variable or the standard input.')
    .argument('<name>')
    .option('--no-password', 'without a password: the user logs in with a certificate whose common name is <name>')
    .addHelpText(
      'after',
      examples(
        'remora auth user add alice',
        'remora auth user add ci --new-password-file ci.password',
        'remora auth user add worker-7 --no-password',
      ),
    );
  return addConnectionFlags(addNewPasswordFlags(command), shell).action(async (name: string, flags: AddFlags) => {
    const password = flags.password ? await newPassword(name, flags, shell) : undefined;
    const value = { name, ...(password !== undefined && { password }) };
    await changeAuth(flags, shell, {
      change: { $case: 'addUser', value },
      done: { text: `added the user ${printableText(name)}`, json: { user: name } },
    });
  });
}

interface DeleteFlags extends ConnectionFlags {
  readonly yes?: true;
}

function deleteCommand(shell: Shell): Command {
  const command = new Command('delete')
    .alias('del')
    .description('Deletes a user. Its tokens are not valid any more, and its watches end.')
    .argument('<name>')
    .addHelpText('after', examples('remora auth user delete alice'));
  return addConnectionFlags(addYesFlag(command), shell).action(async (name: string, flags: DeleteFlags) => {
    await confirm(`The user ${printableText(name)} will be deleted.`, flags.yes, shell);
    await changeAuth(flags, shell, {
      change: { $case: 'deleteUser', value: name },
      done: { text: `deleted the user ${printableText(name)}`, json: { user: name } },
    });
  });
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description('Lists users and their roles.')
    .addHelpText('after', examples('remora auth user ls', 'remora auth user ls --json'));
  return addConnectionFlags(command, shell).action((flags: ConnectionFlags) =>
    showAuth(flags, shell, async (client) => {
      const users = await client.users();
      return { text: usersTable(users), json: { users: users.map(jsonUser) } };
    }),
  );
}

function showCommand(shell: Shell): Command {
  const command = new Command('show')
    .description('Shows a user and its roles. Users may look at themselves.')
    .argument('<name>')
    .addHelpText('after', examples('remora auth user show alice'));
  return addConnectionFlags(command, shell).action((name: string, flags: ConnectionFlags) =>
    showAuth(flags, shell, async (client) => {
      const user = await client.user(name);
      return { text: usersTable([user]), json: jsonUser(user) };
    }),
  );
}

function passwordCommand(shell: Shell): Command {
  const command = new Command('passwd')
    .description('Changes the password of a user. Clients that have logged in with the old one have to log in again.')
    .argument('<name>')
    .addHelpText('after', examples('remora auth user passwd alice', 'remora auth user passwd ci --new-password-stdin'));
  return addConnectionFlags(addNewPasswordFlags(command), shell).action(
    async (name: string, flags: ConnectionFlags & NewPasswordFlags) => {
      const value = { name, password: await newPassword(name, flags, shell) };
      await changeAuth(flags, shell, {
        change: { $case: 'setPassword', value },
        done: { text: `changed the password of ${printableText(name)}`, json: { user: name } },
      });
    },
  );
}

interface RoleChange {
  readonly name: string;
  readonly $case: 'grantRole' | 'revokeRole';
  readonly description: string;
  readonly example: string;
  readonly says: (user: string, role: string) => string;
}

const GRANT: RoleChange = {
  name: 'grant-role',
  $case: 'grantRole',
  description: 'Gives a user a role, with all its permissions.',
  example: 'remora auth user grant-role alice shop',
  says: (user, role) => `${user} has the role ${role}`,
};
const REVOKE: RoleChange = {
  name: 'revoke-role',
  $case: 'revokeRole',
  description:
    'Takes a role from a user. Its watches, and its waits for locks, end where they are not allowed any more.',
  example: 'remora auth user revoke-role alice shop',
  says: (user, role) => `${user} does not have the role ${role} any more`,
};

function roleChange(shell: Shell, { name, $case, description, example, says }: RoleChange): Command {
  const command = new Command(name)
    .description(description)
    .argument('<user>')
    .argument('<role>')
    .addHelpText('after', examples(example));
  return addConnectionFlags(command, shell).action((user: string, role: string, flags: ConnectionFlags) =>
    changeAuth(flags, shell, {
      change: { $case, value: { user, role } },
      done: { text: says(printableText(user), printableText(role)), json: { user, role } },
    }),
  );
}

function usersTable(users: readonly auth.User[]): string {
  const rows = users.map(({ name, roles, hasPassword }) => [
    printableText(name),
    roles.map(printableText).join(', ') || '-',
    hasPassword ? 'yes' : 'no',
  ]);
  return table(['USER', 'ROLES', 'PASSWORD'], rows);
}

function jsonUser({ name, roles, hasPassword }: auth.User) {
  return { name, roles, hasPassword };
}
