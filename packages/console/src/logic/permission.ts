/** Permissions in words, from what is typed, and as the command line takes them. */
import type { KeyPermissionJson, LockPermissionJson } from '@remora/gateway/http/json/users';
import type { JsonBytes } from './bytes.ts';
import type { Word } from './shell.ts';

export type Permission = { readonly keys: KeyPermissionJson } | { readonly locks: LockPermissionJson };

export const VERBS = [
  { value: 'read', text: 'Read keys' },
  { value: 'write', text: 'Write keys' },
  { value: 'readwrite', text: 'Read and write keys' },
  { value: 'lock-read', text: 'Look at locks' },
  { value: 'acquire', text: 'Acquire locks' },
  { value: 'steer', text: 'Steer locks: force, revoke, close' },
] as const;

export type Verb = (typeof VERBS)[number]['value'];
export type Scope = 'one' | 'prefix' | 'all';

export interface TypedPermission {
  readonly verb: Verb;
  readonly scope: Scope;
  /** The key or the lock, or their prefix; not used for all. */
  readonly target: string;
  /** Of locks. Empty: all. */
  readonly namespace: string;
}

export function isOfLocks(verb: Verb): boolean {
  return verb === 'lock-read' || verb === 'acquire' || verb === 'steer';
}

export function permissionOf({ verb, scope, target, namespace }: TypedPermission): Permission {
  const where = scope === 'all' ? '' : target;
  const name = (one: string): Readonly<Record<string, string>> => ({ [scope === 'one' ? one : 'prefix']: where });
  if (verb === 'read' || verb === 'write' || verb === 'readwrite') return { keys: { access: verb, ...name('key') } };
  return { locks: { verb: verb === 'lock-read' ? 'read' : verb, namespace, ...name('name') } };
}

/** What a permission is for, in words before and behind its name. */
export function scopeOf(permission: Permission): { readonly text: string; readonly names: readonly JsonBytes[] } {
  if ('locks' in permission) {
    const { namespace, name, prefix } = permission.locks;
    const where = namespace === '' ? 'in all namespaces' : `in namespace ${namespace}`;
    if (name !== undefined) return { text: `one lock ${where}:`, names: [name] };
    return isAll(prefix)
      ? { text: `all locks ${where}`, names: [] }
      : { text: `locks ${where} with the prefix`, names: names(prefix) };
  }
  const { key, prefix, from, to } = permission.keys;
  if (key !== undefined) return { text: 'one key:', names: [key] };
  if (from !== undefined)
    return { text: to === undefined ? 'all keys from' : 'keys from, up to', names: names(from, to) };
  return isAll(prefix) ? { text: 'all keys', names: [] } : { text: 'keys with the prefix', names: names(prefix) };
}

function isAll(prefix: JsonBytes | undefined): boolean {
  return prefix === undefined || prefix === '';
}

function names(...given: readonly (JsonBytes | undefined)[]): readonly JsonBytes[] {
  return given.filter((name) => name !== undefined);
}

/** The words behind `remora auth grant ROLE`, `revoke ROLE` and `can USER`. */
export function permissionWords(permission: Permission): readonly Word[] {
  if ('locks' in permission) {
    const { verb, namespace, name, prefix } = permission.locks;
    const space = namespace === '' ? ['--all-namespaces'] : namespace === 'default' ? [] : ['--namespace', namespace];
    const isRead = verb === 'read' ? ['--lock'] : [];
    if (name !== undefined) return [verb, name, ...isRead, ...space];
    return isAll(prefix) ? [verb, '--all', ...isRead, ...space] : [verb, prefix ?? '', '--prefix', ...isRead, ...space];
  }
  const { access, key, prefix, from, to } = permission.keys;
  if (key !== undefined) return [access, key];
  if (from !== undefined) return to === undefined ? [access, from, '--from-key'] : [access, from, '--range-end', to];
  return isAll(prefix) ? [access, '--all'] : [access, prefix ?? '', '--prefix'];
}
