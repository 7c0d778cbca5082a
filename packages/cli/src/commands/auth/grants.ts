import { Argument, Command } from 'commander';
import { printableText } from '../../format/bytes-text.ts';
import { commandLine } from '../../format/command-line.ts';
import type { Shell } from '../../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples } from '../connection.ts';
import {
  addTargetFlags,
  jsonPermission,
  permissionWords,
  readPermission,
  type TargetFlags,
  VERBS,
  type Verb,
} from './permission.ts';
import { changeAuth } from './run-auth.ts';

interface GrantFlags extends ConnectionFlags, TargetFlags {}

interface Change {
  readonly name: 'grant' | 'revoke';
  readonly summary: string;
  readonly description: string;
  readonly examples: readonly string[];
  readonly says: (role: string, permission: string) => string;
}

const GRANT: Change = {
  name: 'grant',
  summary: 'Lets a role use keys or locks.',
  description:
    'Lets a role use one key or lock, or with a flag several of them. Another verb for exactly the same keys replaces ' +
    'the one that the role had; verbs on locks are granted one by one.',
  examples: [
    'remora auth grant shop readwrite orders/ --prefix',
    'remora auth grant shop acquire orders/ --prefix',
    'remora auth grant shop read nightly --lock',
    'remora auth grant ops steer --all --all-namespaces',
  ],
  says: (role, permission) => `the role ${role} may ${permission}`,
};
const REVOKE: Change = {
  name: 'revoke',
  summary: 'Takes a permission from a role.',
  description:
    'Takes a permission from a role, named exactly as it was granted and as `remora auth role show` prints it. Watches ' +
    'and waits for locks end where they are not allowed any more.',
  examples: ['remora auth role show shop', 'remora auth revoke shop acquire orders/ --prefix'],
  says: (role, permission) => `the role ${role} has no permission any more to ${permission}`,
};

export function grantCommand(shell: Shell): Command {
  return changeCommand(shell, GRANT);
}

export function revokeCommand(shell: Shell): Command {
  return changeCommand(shell, REVOKE);
}

function changeCommand(shell: Shell, change: Change): Command {
  const command = new Command(change.name)
    .summary(change.summary)
    .description(change.description)
    .argument('<role>')
    .addArgument(new Argument('<verb>', 'what the role may do').choices(VERBS))
    .argument('[target]', 'a key or a lock')
    .addHelpText('after', examples(...change.examples));
  return addConnectionFlags(addTargetFlags(command), shell).action(
    (role: string, verb: Verb, target: string | undefined, flags: GrantFlags) => {
      const permission = readPermission(verb, target, flags);
      const text = change.says(printableText(role), commandLine(permissionWords(permission)));
      return changeAuth(flags, shell, {
        change: changeOf(change.name, role, permission),
        done: { text, json: { role, ...jsonPermission(permission) } },
      });
    },
  );
}

function changeOf(name: Change['name'], role: string, permission: ReturnType<typeof readPermission>) {
  if (permission.$case === 'keys') {
    const value = { role, permission: permission.value };
    return name === 'grant' ? ({ $case: 'grantKeys', value } as const) : ({ $case: 'revokeKeys', value } as const);
  }
  const value = { role, permission: permission.value };
  return name === 'grant' ? ({ $case: 'grantLocks', value } as const) : ({ $case: 'revokeLocks', value } as const);
}
