import type { auth } from '@remora/protocol/remora';
import { printableText } from '../../format/bytes-text.ts';
import { commandLine } from '../../format/command-line.ts';
import { table } from '../../format/table.ts';
import { jsonPermission, type Permission, targetWords, verbOf } from './permission.ts';

/** The permissions of a role, as `grant` and `revoke` take them. */
function permissionRows({ name, keys, locks }: auth.Role): readonly (readonly string[])[] {
  if (name === 'root') return [['root', 'everything', '']];
  const permissions = permissionsOf({ keys, locks });
  if (permissions.length === 0) return [[printableText(name), '-', '']];
  return permissions.map((each) => [printableText(name), verbOf(each), commandLine(targetWords(each))]);
}

export function rolesTable(roles: readonly auth.Role[]): string {
  return table(['ROLE', 'MAY', 'TARGET'], roles.flatMap(permissionRows));
}

export function jsonRole({ name, keys, locks }: auth.Role) {
  return { name, permissions: permissionsOf({ keys, locks }).map(jsonPermission) };
}

function permissionsOf({ keys, locks }: Pick<auth.Role, 'keys' | 'locks'>): readonly Permission[] {
  return [
    ...keys.map((value): Permission => ({ $case: 'keys', value })),
    ...locks.map((value): Permission => ({ $case: 'locks', value })),
  ];
}
