/** How callers name a lock: its name, and the namespace that it is in. */
import { DEFAULT_NAMESPACE, type LockId } from '@remora/lock';
import { type BytesLike, requireText, toBytes } from '../kv/keys.ts';
import { text } from '../options/option-kinds.ts';
import { type ChecksOf, checkOptions, optionSet } from '../options/options.ts';

export interface NamespaceOptions {
  /**
   * The namespace of the lock, 1 to 255 bytes of UTF-8. Names in different namespaces are different locks. Default
   * `default`.
   */
  readonly namespace?: string | undefined;
}

export const NAMESPACE_CHECKS: ChecksOf<NamespaceOptions> = { namespace: text };
export const LOCK_OPTIONS = optionSet<NamespaceOptions>('lock', NAMESPACE_CHECKS);

export interface LockName extends NamespaceOptions {
  /** The name of the lock, 1 to 1,024 bytes. */
  readonly name: BytesLike;
}

export function lockId({ name, namespace }: LockName): LockId {
  return lockIdOf(name, { namespace });
}

export function lockIdOf(name: BytesLike, options: NamespaceOptions): LockId {
  checkOptions(LOCK_OPTIONS, options);
  const { namespace = DEFAULT_NAMESPACE } = options;
  return { namespace: requireText(namespace, 'namespace'), name: toBytes(name) };
}
