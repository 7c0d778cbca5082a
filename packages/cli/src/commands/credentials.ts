/**
 * As which user a command connects: from flags, variables, files, or a person.
 *
 * CC1. No password and no token is an argument, which other users of the machine can see, and none is printed.
 * CC2. A flag is meant for this command: variables for another way to log in, or for another user, do not count then.
 * CC3. A person is asked only when the command connects, and once.
 */
import { type Command, Option } from 'commander';
import { CommandError } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';
import type { Shell } from '../shell.ts';
import { passwordIn, secretIn } from './secrets.ts';

export interface CredentialFlags {
  readonly user?: string;
  readonly passwordFile?: string;
  readonly tokenFile?: string;
  readonly allowPlainText?: true;
  /** Set when the command line has been read (CC3). */
  readonly credentials?: () => Promise<ClientCredentials>;
}

/** As options of `connect` and of `AdminClient`. */
export interface ClientCredentials {
  readonly user?: string;
  readonly password?: string;
  /** Read again for each log-in, so that another program can renew the file. */
  readonly token?: string | (() => string);
  readonly allowPlainText?: true;
}

const USER = 'REMORA_USER';
const PASSWORD = 'REMORA_PASSWORD';
const PASSWORD_FILE = 'REMORA_PASSWORD_FILE';
const TOKEN = 'REMORA_TOKEN';
const TOKEN_FILE = 'REMORA_TOKEN_FILE';

export function addCredentialFlags(command: Command, shell: Shell): Command {
  return command
    .addOption(new Option('--user <name>', `user to log in as (or ${USER}); asks for the password`))
    .option('--password-file <file>', `file with the password of --user (or ${PASSWORD_FILE}, or ${PASSWORD})`)
    .option('--token-file <file>', `file with a token to log in with (or ${TOKEN_FILE}, or ${TOKEN})`)
    .option('--allow-plain-text', 'send the password or token also to remote nodes without TLS')
    .hook('preAction', () => {
      const read = credentialReader(command.opts<CredentialFlags>(), shell);
      let credentials: Promise<ClientCredentials> | undefined;
      command.setOptionValue('credentials', () => {
        credentials ??= read();
        return credentials;
      });
    });
}

/** @throws CommandError `usage` for flags and variables that contradict each other */
function credentialReader(flags: CredentialFlags, shell: Shell): () => Promise<ClientCredentials> {
  const { allowPlainText, tokenFile, passwordFile } = flags;
  const more = allowPlainText ? { allowPlainText } : {};
  if (tokenFile !== undefined && (flags.user !== undefined || passwordFile !== undefined)) {
    throw usage('--token-file: give a token, or a user and a password, not both');
  }
  if (tokenFile !== undefined) return async () => ({ token: tokenOf(tokenFile, '--token-file', shell), ...more });
  const env = (name: string) => shell.env[name] || undefined;
  const user = flags.user ?? env(USER);
  const [token, variableFile] =
    flags.user === undefined && passwordFile === undefined ? [env(TOKEN), env(TOKEN_FILE)] : []; // CC2
  if (
    (token !== undefined && variableFile !== undefined) ||
    (user !== undefined && (token ?? variableFile) !== undefined)
  ) {
    throw usage(`${TOKEN}, ${TOKEN_FILE} and ${USER}: set one of them`);
  }
  if (token !== undefined) return async () => ({ token, ...more });
  if (variableFile !== undefined) return async () => ({ token: tokenOf(variableFile, TOKEN_FILE, shell), ...more });
  if (user === undefined) {
    const flag = passwordFile === undefined ? [PASSWORD, PASSWORD_FILE].find(env) : '--password-file';
    if (flag !== undefined) throw usage(`${flag}: the user is missing; add --user or ${USER}`);
    return async () => more;
  }
  requireName(user, flags.user === undefined ? USER : '--user');
  return async () => ({ user, password: await passwordOf(user, flags, shell), ...more });
}

function tokenOf(path: string, flag: string, shell: Shell): () => string {
  secretIn(path, flag, shell);
  return () => secretIn(path, flag, { err: () => {} });
}

/** CC1. etcdctl takes `name:password`. */
function requireName(user: string, flag: string): void {
  if (user === '') throw usage(`${flag} is empty`);
  if (!user.includes(':')) return;
  throw usage(
    `${flag} takes a name alone: a password in a command line can be seen by other users of this machine. ` +
      `Use --password-file or ${PASSWORD}, or type it when it is asked for`,
  );
}

async function passwordOf(user: string, flags: CredentialFlags, shell: Shell): Promise<string> {
  if (flags.passwordFile !== undefined) return passwordIn(flags.passwordFile, '--password-file', shell);
  const env = (name: string) => shell.env[name] || undefined;
  const isTheirs = env(USER) === undefined || env(USER) === user; // CC2
  const [password, file] = isTheirs ? [env(PASSWORD), env(PASSWORD_FILE)] : [];
  if (password !== undefined && file !== undefined) throw usage(`${PASSWORD} and ${PASSWORD_FILE}: set one of them`);
  if (password !== undefined) return password;
  if (file !== undefined) return passwordIn(file, PASSWORD_FILE, shell);
  const typed = await shell.askSecret(`Password of ${printableText(user)}: `);
  if (typed) return typed;
  throw usage(
    typed === undefined
      ? `the password of ${printableText(user)} cannot be asked for: no terminal. Use --password-file or ${PASSWORD}`
      : 'the password is empty',
  );
}

function usage(message: string): CommandError {
  return new CommandError('usage', message);
}
