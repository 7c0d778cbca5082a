import type { Command } from 'commander';
import { CommandError } from '../../exit-codes.ts';
import { printableText } from '../../format/bytes-text.ts';
import type { Shell } from '../../shell.ts';
import { passwordIn, withoutLineEnd } from '../secrets.ts';

export interface NewPasswordFlags {
  readonly newPasswordFile?: string;
  readonly newPasswordStdin?: true;
}

const VARIABLE = 'REMORA_NEW_PASSWORD';

export function addNewPasswordFlags(command: Command): Command {
  return command
    .option('--new-password-file <file>', `file with the new password (or ${VARIABLE} with the password itself)`)
    .option('--new-password-stdin', 'read the new password from the standard input');
}

/**
 * From a file, the standard input, a variable, or a person who types it twice. Never from an argument, which other
 * users of the machine can see.
 *
 * @throws CommandError `usage`
 */
export async function newPassword(user: string, flags: NewPasswordFlags, shell: Shell): Promise<string> {
  const { newPasswordFile: file, newPasswordStdin: fromInput } = flags;
  if (file !== undefined && fromInput) throw usage('give --new-password-file or --new-password-stdin, not both');
  if (file !== undefined) return passwordIn(file, '--new-password-file', shell);
  if (fromInput) return given(withoutLineEnd(await shell.input()), 'the standard input');
  const variable = shell.env[VARIABLE];
  if (variable !== undefined && variable !== '') return variable;
  return typedTwice(user, shell);
}

async function typedTwice(user: string, shell: Shell): Promise<string> {
  const name = printableText(user);
  const first = await shell.askSecret(`New password of ${name}: `);
  if (first === undefined) {
    throw usage(
      `the new password of ${name} cannot be asked for: no terminal. Use --new-password-file, --new-password-stdin or ${VARIABLE}`,
    );
  }
  given(first, 'the new password');
  if ((await shell.askSecret('The same again: ')) === first) return first;
  throw new CommandError('failed', 'the two passwords differ; nothing was changed');
}

function given(password: string, where: string): string {
  if (password !== '') return password;
  throw usage(`${where} is empty; a user without a password is added with --no-password`);
}

function usage(message: string): CommandError {
  return new CommandError('usage', message);
}
