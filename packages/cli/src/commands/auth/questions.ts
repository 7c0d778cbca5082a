import type { auth } from '@remora/protocol/remora';
import { Argument, Command } from 'commander';
import { CommandError, exitCode } from '../../exit-codes.ts';
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
import { showAuth } from './run-auth.ts';

const ADMINISTER = 'administer';

interface CanFlags extends ConnectionFlags, TargetFlags {}

export function canCommand(shell: Shell): Command {
  const command = new Command('can')
    .summary('Explains whether a user may do something.')
    .description(
      'Explains whether a user may do something: which roles allow it, or what to grant. Exits with 1 if it is not ' +
        'allowed. Answers as if authentication were on, so that permissions can be tried before it is switched on.',
    )
    .argument('<name>', 'name of the user')
    .addArgument(
      new Argument('<verb>', `what the user would do; "${ADMINISTER}" needs no target`).choices([...VERBS, ADMINISTER]),
    )
    .argument('[target]', 'a key or a lock')
    .addHelpText(
      'after',
      examples(
        'remora auth can alice acquire orders/42',
        'remora auth can alice read orders/ --prefix',
        'remora auth can alice read orders/42 --lock',
        'remora auth can alice administer',
      ),
    );
  return addConnectionFlags(addTargetFlags(command), shell).action(
    (user: string, verb: Verb | typeof ADMINISTER, target: string | undefined, flags: CanFlags) => {
      const { what, words } = questionOf(verb, target, flags);
      return showAuth(flags, shell, async (client) => {
        const answer = await client.explain(user, what);
        if (!answer.allowed) process.exitCode = exitCode('failed');
        return { text: answerText(answer, words), json: jsonAnswer(answer) };
      });
    },
  );
}

function questionOf(verb: Verb | typeof ADMINISTER, target: string | undefined, flags: CanFlags) {
  if (verb !== ADMINISTER) {
    const what = readPermission(verb, target, flags);
    return { what, words: commandLine(permissionWords(what)) };
  }
  if (target === undefined && !flags.all) return { what: { $case: ADMINISTER, value: {} } as const, words: ADMINISTER };
  throw new CommandError('usage', `${ADMINISTER} has no target`);
}

/** For people: why, and what to type. */
export function answerText(answer: auth.ExplainResponse, words: string): string {
  const off = answer.enabled ? [] : ['Authentication is off: everybody may do everything now. With authentication on:'];
  return [...off, ...(answer.allowed ? allowedText(answer, words) : refusedText(answer))].join('\n');
}

function allowedText({ user, through }: auth.ExplainResponse, words: string): readonly string[] {
  const by = through.map((each) => `  the role ${printableText(each.role)} may ${permissionText(each)}`);
  return [`${printableText(user)} may ${words}:`, ...by];
}

function permissionText({ permission }: auth.GrantedPermission): string {
  return permission === undefined ? 'do everything' : commandLine(permissionWords(permission));
}

function refusedText({ user, why, missing, sufficientRoles }: auth.ExplainResponse): readonly string[] {
  const byRole = sufficientRoles.map((role) => `  ${commandLine([...USER, 'grant-role', user, role])}`);
  return [
    printableText(why),
    ...(byRole.length === 0 ? [] : ['To allow it, give the user a role that may do it already:', ...byRole]),
    ...(byRole.length === 0 ? ['To allow it:'] : ['Or:']),
    ...grantLines(user, missing),
  ];
}

const USER = ['remora', 'auth', 'user'] as const;
/** Stands for a role that the person who reads it names. */
const NEW_ROLE = 'ROLE';

function grantLines(user: string, missing: readonly auth.GrantedPermission[]): readonly string[] {
  const lines = missing.map(({ role, permission }) =>
    permission === undefined
      ? [...USER, 'grant-role', user, role]
      : ['remora', 'auth', 'grant', role || NEW_ROLE, ...permissionWords(permission)],
  );
  const isNew = missing.some(({ role }) => role === '');
  const all = isNew
    ? [['remora', 'auth', 'role', 'add', NEW_ROLE], ...lines, [...USER, 'grant-role', user, NEW_ROLE]]
    : lines;
  return all.map((line) => `  ${commandLine(line)}`);
}

function jsonAnswer({ user, allowed, enabled, why, through, missing, sufficientRoles }: auth.ExplainResponse) {
  const answer = { user, allowed, enabled };
  if (allowed) return { ...answer, through: through.map(jsonGranted) };
  return { ...answer, why, missing: missing.map(jsonGranted), sufficientRoles };
}

function jsonGranted({ role, permission }: auth.GrantedPermission) {
  const named = { role: role === '' ? null : role };
  return permission === undefined ? { ...named, verb: 'everything' } : { ...named, ...jsonPermission(permission) };
}
