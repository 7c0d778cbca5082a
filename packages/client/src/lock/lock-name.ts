/** How callers name a lock: its name, and the namespace that it is in. */
import { DEFAULT_NAMESPACE, type LockId } from '@remora/lock';
import { type BytesLike, requireText, toBytes } from '../kv/keys.ts';
import { flag, text } from '../options/option-kinds.ts';
import { type ChecksOf, checkOptions, optionSet } from '../options/options.ts';

export interface NamespaceOptions {
  /**
   * The namespace of the lock, 1 to 255 bytes of UTF-8. Names in different namespaces are different locks. Default
   * `default`.
   */
  readonly namespace?: string | undefined;
}

export const NAMESPACE_CHECKS: ChecksOf<NamespaceOptions> = { namespace: text };
export const NAMESPACE_OPTIONS = optionSet<NamespaceOptions>('namespace', NAMESPACE_CHECKS);

export interface LockOptions extends NamespaceOptions {
  /**
   * A task that holds the lock by `run` enters it again, instead of waiting for itself, wherever it acquires it: the
   * acquire returns the handle of the outer `run`, one level deeper. Of its options only `depthMax` and `signal` apply.
   * Default: `reentrant` of the client.
   */
  readonly reentrant?: boolean | undefined;
}

export const LOCK_OPTIONS = optionSet<LockOptions>('lock', { ...NAMESPACE_CHECKS, reentrant: flag });

export interface LockName extends NamespaceOptions {
  /** The name of the lock, 1 to 1,024 bytes. */
  readonly name: BytesLike;
}

export function lockId({ name, namespace }: LockName): LockId {
  return lockIdOf(name, { namespace });
}

export function lockIdOf(name: BytesLike, options: NamespaceOptions): LockId {
  checkOptions(NAMESPACE_OPTIONS, options);
  const { namespace = DEFAULT_NAMESPACE } = options;
  return { namespace: requireText(namespace, 'namespace'), name: toBytes(name) };
}

/** The lock of that name, and what it needs, for calls that also take `reentrant`. */
export function lockAs<Deps extends { readonly reentrant: boolean }>(
  deps: Deps,
  name: BytesLike,
  options: LockOptions,
): readonly [deps: Deps, id: LockId] {
  checkOptions(LOCK_OPTIONS, options);
  const { namespace, reentrant = deps.reentrant } = options;
  return [reentrant === deps.reentrant ? deps : { ...deps, reentrant }, lockIdOf(name, { namespace })];
}
