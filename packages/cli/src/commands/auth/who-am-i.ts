import type { auth } from '@remora/protocol/remora';
import { Command } from 'commander';
import { printableText } from '../../format/bytes-text.ts';
import { commandLine } from '../../format/command-line.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import { jsonRole, rolesTable } from './permissions-text.ts';
import { showAuth } from './run-auth.ts';

export function whoAmICommand(shell: Shell): Command {
  const command = new Command('whoami')
    .description('Shows as which user the cluster sees this command, and what that user may do.')
    .addHelpText('after', examples('remora auth whoami', 'remora auth whoami --user alice'));
  return addConnectionFlags(command, shell).action((flags: ConnectionFlags) =>
    showAuth(flags, shell, async (client) => {
      const caller = await client.whoAmI();
      const { enabled, user, method, roles } = caller;
      const named = user === '' ? { user: null } : { user, method };
      return { text: callerText(caller), json: { enabled, ...named, roles: roles.map(jsonRole) } };
    }),
  );
}

function callerText({ enabled, user, method, exists, roles }: auth.WhoAmIResponse): string {
  const off = enabled ? [] : ['authentication is off: everybody may do everything'];
  if (user === '') return off[0] ?? 'nobody: log in with --user NAME or with a certificate';
  const name = `${printableText(user)}, by ${method}`;
  if (!exists) {
    const add = commandLine(['remora', 'auth', 'user', 'add', user, '--no-password']);
    return [...off, `${name}: there is no such user; add it: ${add}`].join('\n');
  }
  const may = roles.length === 0 ? 'no roles' : rolesTable(roles);
  return [...off, name, may].join('\n');
}
