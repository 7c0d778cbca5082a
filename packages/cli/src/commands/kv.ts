import { int, jsonBytes } from '@remora/base';
import { Command } from 'commander';
import type { KeySelector, KvPair, PutOptions, RemoraClient } from 'remora';
import { CommandError } from '../exit-codes.ts';
import { printable, printableText, printableValue } from '../format/bytes-text.ts';
import { aborted, readStdin, type Shell, stopSignal } from '../shell.ts';
import { addConnectionFlags, type ConnectionFlags, examples, flagReader, withClient } from './connection.ts';

const EXAMPLES = examples(
  'remora kv put greeting hello',
  'remora kv get greeting',
  'remora kv get --prefix orders/ --limit 10 --json',
  'cat photo.jpg | remora kv put photo -',
  'remora kv watch --prefix orders/',
);

interface GetFlags extends ConnectionFlags {
  readonly prefix?: true;
  readonly keysOnly?: true;
  readonly limit?: number;
  readonly revision?: number;
  readonly serializable?: true;
}

interface WatchFlags extends ConnectionFlags {
  readonly prefix?: true;
  readonly revision?: number;
}

interface WriteFlags extends ConnectionFlags {
  readonly lock?: string;
  readonly lockVersion?: number;
  readonly namespace: string;
}

interface DeleteFlags extends WriteFlags {
  readonly prefix?: true;
  readonly all?: true;
}

export function kvCommand(shell: Shell): Command {
  const kv = new Command('kv').description('Reads and writes keys.').addHelpText('after', EXAMPLES);
  kv.addCommand(getCommand(shell)).addCommand(putCommand(shell));
  kv.addCommand(deleteCommand(shell)).addCommand(watchCommand(shell));
  return kv;
}

function getCommand(shell: Shell): Command {
  const command = new Command('get')
    .description('Prints the value of a key, or all pairs under a prefix. Exits with 1 if the key does not exist.')
    .argument('<key>')
    .option('--prefix', 'all keys that start with <key>')
    .option('--keys-only', 'print keys without values')
    .option('--limit <number>', 'maximum number of pairs', flagReader(int({ min: 1 })))
    .option('--revision <number>', 'read as of this revision', flagReader(int({ min: 1 })))
    .option('--serializable', 'read from any replica: the result may be stale, but works without a leader')
    .addHelpText(
      'after',
      examples(
        'remora kv get greeting',
        'remora kv get --prefix orders/ --limit 10',
        'remora kv get photo > photo.jpg',
      ),
    );
  return addConnectionFlags(command, shell).action((key: string, flags: GetFlags) => {
    const selected = selector(key, flags);
    return withClient(flags, async (client) => {
      const { limit, revision } = flags;
      const answer = await client.kv.range(selected, {
        keysOnly: flags.keysOnly === true,
        serializable: flags.serializable === true,
        ...(limit === undefined ? {} : { limit }),
        ...(revision === undefined ? {} : { revision }),
      });
      const [first] = answer.kvs;
      if (flags.json) {
        shell.out(JSON.stringify({ revision: answer.revision, more: answer.more, kvs: answer.kvs.map(jsonPair) }));
        if (!flags.prefix && first === undefined) throw noKey(key);
        return;
      }
      if (flags.prefix) for (const pair of answer.kvs) shell.out(pairLine(pair, flags.keysOnly === true));
      else if (first === undefined) throw noKey(key);
      else if (flags.keysOnly) shell.out(shell.shown ? printableText(key) : key);
      else if (shell.shown) shell.out(printableValue(first.value));
      // The exact bytes, so that a value put from a file can be written to a file.
      else shell.raw(first.value);
      if (flags.prefix && answer.more)
        shell.err(`shown ${answer.kvs.length} of ${answer.count} pairs; raise --limit to see more`);
    });
  });
}

function noKey(key: string): CommandError {
  return new CommandError('failed', `key not found: ${printableText(key)}`);
}

function putCommand(shell: Shell): Command {
  const command = new Command('put')
    .description('Sets a key. Reads the value from standard input if it is "-".')
    .argument('<key>', '', readKeyText)
    .argument('<value>')
    .addHelpText(
      'after',
      examples(
        'remora kv put greeting hello',
        'cat photo.jpg | remora kv put photo -',
        'remora kv put orders/42 sent --lock "$REMORA_LOCK_NAME" --lock-version "$REMORA_LOCK_VERSION"',
      ),
    );
  return writing(command, shell).action(async (key: string, value: string, flags: WriteFlags) => {
    const bytes = value === '-' ? await readStdin() : Buffer.from(value);
    await withClient(flags, async (client) => {
      const { revision } = await client.kv.put(key, bytes, fenceOf(flags));
      shell.out(flags.json ? JSON.stringify({ revision }) : `revision ${revision}`);
    });
  });
}

function deleteCommand(shell: Shell): Command {
  const command = new Command('delete')
    .alias('del')
    .description('Deletes a key, or all keys under a prefix.')
    .argument('<key>')
    .option('--prefix', 'all keys that start with <key>')
    .option('--all', 'with --prefix and an empty <key>: delete every key')
    .addHelpText('after', examples('remora kv delete greeting', 'remora kv delete --prefix orders/42/'));
  return writing(command, shell).action((key: string, flags: DeleteFlags) => {
    // Usually an unset variable of a script.
    if (flags.prefix && key === '' && !flags.all) {
      throw new CommandError('usage', 'an empty prefix matches every key; add --all to delete all keys');
    }
    const selected = selector(key, flags);
    return withClient(flags, async (client) => {
      const { deleted, revision } = await client.kv.delete(selected, fenceOf(flags));
      shell.out(flags.json ? JSON.stringify({ deleted, revision }) : `deleted ${deleted}`);
    });
  });
}

/** Commands that change keys may require that a lock is held. */
function writing(command: Command, shell: Shell): Command {
  command
    .option('--lock <name>', 'write only while the grant with --lock-version holds this lock; else exit with 1')
    .option(
      '--lock-version <number>',
      'fencing version of the grant: REMORA_LOCK_VERSION under `remora lock run`',
      flagReader(int({ min: 1 })),
    )
    .option('--namespace <name>', 'namespace of the lock', 'default');
  return addConnectionFlags(command, shell);
}

function fenceOf({ lock, lockVersion, namespace }: WriteFlags): Pick<PutOptions, 'fence'> {
  if (lock === undefined && lockVersion === undefined) return {};
  if (lock !== undefined && lockVersion !== undefined)
    return { fence: { name: lock, namespace, version: lockVersion } };
  throw new CommandError('usage', '--lock and --lock-version must be given together');
}

function watchCommand(shell: Shell): Command {
  const command = new Command('watch')
    .description('Prints changes as they happen, until Ctrl-C.')
    .argument('<key>')
    .option('--prefix', 'all keys that start with <key>')
    .option('--revision <number>', 'start at this revision', flagReader(int({ min: 1 })))
    .addHelpText(
      'after',
      examples('remora kv watch greeting', 'remora kv watch --prefix orders/ --revision 100 --json'),
    );
  return addConnectionFlags(command, shell).action((key: string, flags: WatchFlags) => {
    const selected = selector(key, flags);
    return withClient(flags, (client) => watch(client, selected, flags, shell));
  });
}

async function watch(client: RemoraClient, selected: KeySelector, flags: WatchFlags, shell: Shell): Promise<void> {
  const { signal, dispose } = stopSignal();
  const { revision } = flags;
  const events = client.kv.watch(selected, {
    signal,
    ...(revision === undefined ? {} : { startRevision: revision }),
  });
  const printing = (async () => {
    for await (const { type, kv } of events) {
      if (flags.json) shell.out(JSON.stringify({ type, ...jsonPair(kv) }));
      else if (type === 'put') shell.out(`PUT     ${kv.modRevision}  ${pairLine(kv, false)}`);
      else shell.out(`DELETE  ${kv.modRevision}  ${printable(kv.key)}`);
    }
  })();
  try {
    await Promise.race([printing, aborted(signal)]);
  } finally {
    dispose();
  }
}

function selector(key: string, { prefix }: { readonly prefix?: true }): KeySelector {
  return prefix === true ? { prefix: key } : readKeyText(key);
}

/** Refused like any invalid argument, before a server is asked. */
function readKeyText(text: string): string {
  if (text === '') throw new CommandError('usage', 'the key is empty; a key must have at least one byte');
  return text;
}

function pairLine(pair: KvPair, keysOnly: boolean): string {
  return keysOnly ? printable(pair.key) : `${printable(pair.key)}  ${printable(pair.value)}`;
}

function jsonPair({ key, value, createRevision, modRevision, version, lease }: KvPair) {
  return { key: jsonBytes(key), value: jsonBytes(value), createRevision, modRevision, version, lease: String(lease) };
}
