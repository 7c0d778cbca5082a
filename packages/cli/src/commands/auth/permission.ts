/**
 * Permissions on the command line: VERB TARGET and flags, the same to grant, to revoke, to ask and to show.
 *
 * PL1. `permissionWords` of what `readPermission` has read are words that it reads as the same permission.
 */
import { jsonBytes, prefixEnd, utf8Text } from '@remora/base';
import { DEFAULT_NAMESPACE, NAME_BYTES_MAX } from '@remora/lock';
import type { auth } from '@remora/protocol/remora';
import { type Command, Option } from 'commander';
import { CommandError } from '../../exit-codes.ts';

export const KEY_VERBS = ['read', 'write', 'readwrite'] as const;
export const LOCK_VERBS = ['read', 'acquire', 'steer'] as const;
export const VERBS = ['read', 'write', 'readwrite', 'acquire', 'steer'] as const;
export type Verb = (typeof VERBS)[number];

export type Permission =
  | { readonly $case: 'keys'; readonly value: auth.KeyPermission }
  | { readonly $case: 'locks'; readonly value: auth.LockPermission };

export interface TargetFlags {
  readonly lock?: true;
  readonly prefix?: true;
  readonly rangeEnd?: string;
  readonly fromKey?: true;
  readonly namespace?: string;
  readonly allNamespaces?: true;
  readonly hex?: true;
  readonly all?: true;
}

/** The first of all keys, as none is empty. */
const FIRST_KEY = Buffer.of(0);
/** As a range end: to the last key. */
const OPEN_END = Buffer.of(0);

const HELP = `
Verbs:
  read, write, readwrite   of keys
  acquire                  take a lock, wait for it, and release one's own; includes read
  steer                    release a lock by force, ask its holder for it, change its capacity; includes read, but not acquire
  read --lock              show a lock, list it, watch it, check a version`;

export function addTargetFlags(command: Command): Command {
  return command
    .addOption(new Option('--lock', 'with read: <target> is a lock and not a key'))
    .option('--prefix', 'all keys or locks whose names start with <target>')
    .option('--range-end <key>', 'all keys from <target> up to, but not including, this one')
    .option('--from-key', 'all keys from <target> on')
    .option('--namespace <name>', `namespace of the locks (default: ${DEFAULT_NAMESPACE})`)
    .option('--all-namespaces', 'locks in all namespaces')
    .option('--all', 'all keys, or all locks of the namespace; omit <target>')
    .option('--hex', '<target> and --range-end are hexadecimal')
    .addHelpText('after', HELP);
}

/** Without `write`, which a role cannot have on a lock, and so on. @throws CommandError `usage` */
export function readPermission(verb: Verb, target: string | undefined, flags: TargetFlags): Permission {
  const isLock = flags.lock === true || verb === 'acquire' || verb === 'steer';
  if ((target === undefined) !== (flags.all === true)) throw usage('give either a target, or --all for everything');
  if (target === '') throw usage('the target is empty; for everything, omit it and add --all');
  return isLock ? readLocks(verb, target, flags) : readKeys(verb, target, flags);
}

function readLocks(verb: Verb, target: string | undefined, flags: TargetFlags): Permission {
  if (!isOneOf(LOCK_VERBS, verb)) throw usage(`${verb} is for keys; locks have the verbs ${LOCK_VERBS.join(', ')}`);
  if (flags.rangeEnd !== undefined || flags.fromKey) {
    throw usage('--range-end and --from-key are for keys; several locks have a common --prefix');
  }
  if (flags.namespace !== undefined && flags.allNamespaces)
    throw usage('give --namespace or --all-namespaces, not both');
  if (flags.namespace === '') throw usage('--namespace is empty; for all namespaces, add --all-namespaces');
  const name = target === undefined ? Buffer.of() : bytesOf(target, flags);
  if (name.length > NAME_BYTES_MAX) throw usage(`the name has ${name.length} bytes; at most ${NAME_BYTES_MAX}`);
  const namespace = flags.allNamespaces ? '' : (flags.namespace ?? DEFAULT_NAMESPACE);
  const prefix = flags.prefix === true || target === undefined;
  return { $case: 'locks', value: { verb, namespace, name, prefix } };
}

function readKeys(verb: Verb, target: string | undefined, flags: TargetFlags): Permission {
  if (flags.namespace !== undefined || flags.allNamespaces) {
    throw usage('keys are in no namespace; for a lock, add --lock');
  }
  return { $case: 'keys', value: { access: verb, span: spanOf(target, flags) } };
}

/** @throws CommandError `usage` */
function spanOf(target: string | undefined, flags: TargetFlags): auth.KeySpan {
  const { prefix, rangeEnd, fromKey, all } = flags;
  const ways = [prefix, rangeEnd, fromKey, all].filter((each) => each !== undefined);
  if (ways.length > 1) throw usage('give one of --prefix, --range-end, --from-key and --all');
  if (target === undefined) return { key: FIRST_KEY, rangeEnd: OPEN_END };
  const key = bytesOf(target, flags);
  if (fromKey) return { key, rangeEnd: OPEN_END };
  if (rangeEnd !== undefined) {
    const end = bytesOf(rangeEnd, flags);
    if (Buffer.compare(key, end) >= 0) throw usage(`--range-end ${rangeEnd}: it must be behind ${target}`);
    return { key, rangeEnd: end };
  }
  return { key, rangeEnd: prefix ? openEnd(prefixEnd(key)) : Buffer.of() };
}

function openEnd(end: Uint8Array): Buffer {
  return end.length === 0 ? OPEN_END : Buffer.from(end);
}

function bytesOf(text: string, { hex }: TargetFlags): Buffer {
  if (!hex) return Buffer.from(text);
  const digits = text.replace(/^0x/, '');
  if (/^([0-9a-fA-F]{2})+$/.test(digits)) return Buffer.from(digits, 'hex');
  throw usage(`--hex: expected pairs of hex digits, not ${JSON.stringify(text)}`);
}

export function verbOf({ $case, value }: Permission): string {
  return $case === 'keys' ? value.access : value.verb;
}

/** TARGET and flags, as they are typed (PL1). */
export function targetWords(permission: Permission): readonly string[] {
  return permission.$case === 'keys' ? keyWords(permission.value.span) : lockWords(permission.value);
}

export function permissionWords(permission: Permission): readonly string[] {
  return [verbOf(permission), ...targetWords(permission)];
}

function keyWords({ key, rangeEnd }: auth.KeySpan = { key: Buffer.of(), rangeEnd: Buffer.of() }): readonly string[] {
  const isOpen = rangeEnd.equals(OPEN_END);
  if (isOpen && key.equals(FIRST_KEY)) return ['--all'];
  const isPrefix = rangeEnd.length > 0 && rangeEnd.equals(openEnd(prefixEnd(key)));
  const [word, ...hex] = nameWords(key, isPrefix || isOpen ? [] : [rangeEnd]);
  if (rangeEnd.length === 0) return [word, ...hex];
  if (isPrefix) return [word, '--prefix', ...hex];
  if (isOpen) return [word, '--from-key', ...hex];
  return [word, '--range-end', hex.length > 0 ? rangeEnd.toString('hex') : rangeEnd.toString(), ...hex];
}

function lockWords({ verb, namespace, name, prefix }: auth.LockPermission): readonly string[] {
  const words =
    prefix && name.length === 0 ? ['--all'] : nameWords(name).toSpliced(1, 0, ...(prefix ? ['--prefix'] : []));
  const space =
    namespace === '' ? ['--all-namespaces'] : namespace === DEFAULT_NAMESPACE ? [] : ['--namespace', namespace];
  return [...words, ...(verb === 'read' ? ['--lock'] : []), ...space];
}

/** A name, and `--hex` if it, or another one beside it, cannot be typed. */
function nameWords(name: Buffer, beside: readonly Buffer[] = []): [string, ...string[]] {
  const isTyped = [name, ...beside].every((each) => /^[^\p{C}\uFFFD]*$/u.test(utf8Text(each) ?? '\0'));
  const text = name.toString();
  return isTyped && !text.startsWith('-') ? [text] : [name.toString('hex'), '--hex'];
}

/** For programs. */
export function jsonPermission(permission: Permission): Readonly<Record<string, unknown>> {
  if (permission.$case === 'locks') {
    const { verb, namespace, name, prefix } = permission.value;
    return { verb, namespace: namespace === '' ? null : namespace, name: jsonBytes(name), prefix };
  }
  const { access, span } = permission.value;
  const { key, rangeEnd } = span ?? { key: Buffer.of(), rangeEnd: Buffer.of() };
  const isOpen = rangeEnd.equals(OPEN_END);
  return {
    verb: access,
    key: jsonBytes(key),
    ...(rangeEnd.length > 0 && { rangeEnd: isOpen ? null : jsonBytes(rangeEnd) }),
  };
}

function isOneOf<const T extends string>(words: readonly T[], word: string): word is T {
  return (words as readonly string[]).includes(word);
}

function usage(message: string): CommandError {
  return new CommandError('usage', message);
}
