import { int, jsonBytes } from '@remora/base';
import type { SessionRef } from '@remora/lock';
import { Command } from 'commander';
import type { RemoraClient, SessionDetails, SessionInfo, SessionLock } from 'remora';
import { CommandError } from '../exit-codes.ts';
import { printable, printableText } from '../format/bytes-text.ts';
import { counted } from '../format/sizes.ts';
import { table } from '../format/table.ts';
import { conditionText, jsonTerms, leftText, timeText } from '../format/terms-text.ts';
import type { Shell } from '../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, flagReader, withClient } from './connection.ts';

const PAGE = 1_000;

interface ListFlags extends ConnectionFlags {
  readonly limit: number;
  readonly attribute?: Readonly<Record<string, string>>;
  readonly owner?: string;
}

export function sessionCommand(shell: Shell): Command {
  return new Command('session')
    .summary('Shows and closes the sessions of clients.')
    .description('Shows and closes the sessions of clients. Every lock belongs to a session.')
    .addHelpText(
      'after',
      examples(
        'remora session ls --attribute host=worker-7',
        'remora session show 5f3a9c01d2e4b687',
        'remora session close 5f3a9c01d2e4b687',
      ),
    )
    .addCommand(listCommand(shell))
    .addCommand(showCommand(shell))
    .addCommand(closeCommand(shell));
}

function listCommand(shell: Shell): Command {
  const command = new Command('list')
    .alias('ls')
    .description('Lists sessions, including the leases of etcd clients.')
    .option(
      '--attribute <name=text>',
      'only sessions with an attribute (such as host or pid) that starts with the text; repeatable',
      readAttribute,
    )
    .option('--owner <user>', 'only sessions that this user began; "": only those that were begun without a user')
    .option('--limit <number>', 'maximum number of sessions', flagReader(int({ min: 1 })), 1000)
    .addHelpText('after', examples('remora session ls', 'remora session ls --attribute host=worker- --json'));
  return addConnectionFlags(command, shell).action((flags: ListFlags) =>
    withClient(flags, async (client) => {
      const { sessions, more } = await listSessions(client, flags);
      if (flags.json) return shell.out(JSON.stringify({ sessions: sessions.map(jsonSession), more }));
      shell.out(sessionTable(sessions));
      if (more) shell.err('there are more sessions: raise --limit or filter by --attribute');
    }),
  );
}

/** Without the column of users where no session has one. */
function sessionTable(sessions: readonly SessionInfo[]): string {
  const withUsers = sessions.some(({ owner = '' }) => owner !== '');
  const userOf = ({ owner = '' }: SessionInfo): readonly string[] => (withUsers ? [printableText(owner)] : []);
  const rows = sessions.map((session) => [
    session.id.toString(16),
    timeText(session.ttlMs),
    leftText(session.remainingMs),
    ...userOf(session),
    attributesText(session),
  ]);
  return table(['SESSION', 'TTL', 'REMAINING', ...(withUsers ? ['USER'] : []), 'ATTRIBUTES'], rows);
}

async function listSessions(client: RemoraClient, { limit, attribute: attributes = {}, owner }: ListFlags) {
  const sessions: SessionInfo[] = [];
  for await (const session of client.sessions.list({ pageSize: Math.min(PAGE, limit + 1), attributes, owner })) {
    if (sessions.length === limit) return { sessions, more: true };
    sessions.push(session);
  }
  return { sessions, more: false };
}

function showCommand(shell: Shell): Command {
  const command = new Command('show')
    .description('Shows a session, the locks that it holds, and the locks that it waits for.')
    .argument(
      '<session>',
      'id of the session, as printed by "session ls" and "lock show" or returned over HTTP',
      readSession,
    )
    .addHelpText('after', examples('remora session show 5f3a9c01d2e4b687 --json'));
  return addConnectionFlags(command, shell).action((ref: SessionRef, flags: ConnectionFlags) =>
    withClient(flags, async (client) => {
      const session = await sessionOf(client, ref);
      if (!flags.json) return shell.out(sessionText(session));
      const { locks, more } = session;
      shell.out(JSON.stringify({ ...jsonSession(session), locks: locks.map(jsonLock), more }));
    }),
  );
}

function closeCommand(shell: Shell): Command {
  const command = new Command('close')
    .summary('Closes a session: releases its locks and deletes its keys.')
    .description(
      'Closes a session: releases its locks and deletes its keys at once. Its client is not asked: from then on, only the ' +
        'fencing version protects against its writes.',
    )
    .argument('<session>', 'id of the session', readSession)
    .addHelpText('after', examples('remora session close 5f3a9c01d2e4b687'));
  return addConnectionFlags(command, shell).action((ref: SessionRef, flags: ConnectionFlags) =>
    withClient(flags, async (client) => {
      const { id, incarnation } = await sessionOf(client, ref);
      // Closes the session that was looked at, and no later one with the same id.
      await client.sessions.close(id, { incarnation });
      shell.out(flags.json ? JSON.stringify({ closed: true }) : `closed ${id.toString(16)}`);
    }),
  );
}

/** In hex, as this command prints it, or followed by its incarnation, as in HTTP answers; 0: any incarnation. */
function readSession(text: string): SessionRef {
  const match = /^(?:0x)?(-?)([0-9a-f]{1,16})(?:\.(\d{1,15}))?$/i.exec(text);
  if (match === null)
    throw new CommandError('usage', `invalid session id ${printableText(text)}: expected a hexadecimal number`);
  const [, sign, hex, incarnation = '0'] = match;
  const id = BigInt.asIntN(64, BigInt(`0x${hex}`));
  return { lease: sign === '-' ? -id : id, incarnation: Number(incarnation) };
}

async function sessionOf(client: RemoraClient, { lease, incarnation }: SessionRef): Promise<SessionDetails> {
  const session = await client.sessions.show(lease);
  if (session !== undefined && (incarnation === 0 || session.incarnation === incarnation)) return session;
  throw new CommandError('failed', `session not found: ${lease.toString(16)}`);
}

function readAttribute(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new CommandError('usage', `--attribute ${printableText(text)}: expected name=text`);
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

function sessionText(session: SessionDetails): string {
  const { ttlMs, remainingMs, condition, owner = '', locks, more } = session;
  const left = `TTL ${timeText(ttlMs)}, ${leftText(remainingMs)} left`;
  const sections = [`session ${session.id.toString(16)}: ${left}`];
  if (condition !== undefined) sections.push(conditionText(condition));
  if (owner !== '') sections.push(`of the user ${printableText(owner)}`);
  sections.push(attributesText(session));
  const rows = locks.map((lock) => [
    printableText(lock.lock.namespace),
    printable(lock.lock.name),
    lock.mode === 'permits' ? counted(lock.permits, 'permit') : lock.mode,
    lock.position === 0 ? 'holds' : `waits, position ${lock.position}`,
    lock.position === 0 ? lock.version : '',
    lock.ownerId,
  ]);
  sections.push(
    rows.length === 0 ? 'no locks' : table(['NAMESPACE', 'NAME', 'MODE', 'STATE', 'VERSION', 'OWNER'], rows),
  );
  if (more) sections.push('and more locks');
  return sections.join('\n\n');
}

function attributesText({ attributes }: SessionInfo): string {
  return Object.entries(attributes)
    .map(([name, text]) => printableText(`${name}=${text}`))
    .join(' ');
}

function jsonSession({ id, incarnation, attributes, owner, ...terms }: SessionInfo) {
  const whose = owner === undefined ? {} : { owner };
  return { session: id.toString(16), incarnation, ...jsonTerms(terms), attributes, ...whose };
}

function jsonLock({ lock, ownerId, mode, permits, version, depth, position }: SessionLock) {
  return {
    namespace: lock.namespace,
    name: jsonBytes(lock.name),
    ownerId,
    mode,
    ...(mode === 'permits' ? { permits } : {}),
    ...(position === 0 ? { version, depth } : { position }),
  };
}
