import { Command } from 'commander';
import type { Shell } from '../../shell.ts';
import { examples } from '../connection.ts';
import { grantCommand, revokeCommand } from './grants.ts';
import { canCommand } from './questions.ts';
import { roleCommand } from './roles.ts';
import { disableCommand, enableCommand, statusCommand } from './switch.ts';
import { userCommand } from './users.ts';
import { whoAmICommand } from './who-am-i.ts';

const EXAMPLES = examples(
  'remora auth user add root',
  'remora auth user grant-role root root',
  'remora auth enable',
  'remora auth role add shop',
  'remora auth grant shop readwrite orders/ --prefix',
  'remora auth grant shop acquire orders/ --prefix',
  'remora auth can alice acquire orders/42',
  'remora auth whoami --user alice',
);

export function authCommand(shell: Shell): Command {
  return new Command('auth')
    .summary('Manages users, roles and permissions.')
    .description(
      'Manages users, roles and permissions. Roles have permissions on keys and locks, and users have roles. The role ' +
        'root may do everything. Nothing is refused until authentication is on.',
    )
    .addHelpText('after', EXAMPLES)
    .addCommand(statusCommand(shell))
    .addCommand(enableCommand(shell))
    .addCommand(disableCommand(shell))
    .addCommand(userCommand(shell))
    .addCommand(roleCommand(shell))
    .addCommand(grantCommand(shell))
    .addCommand(revokeCommand(shell))
    .addCommand(whoAmICommand(shell))
    .addCommand(canCommand(shell));
}
