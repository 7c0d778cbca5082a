import type { LockName } from '../../api/locks.ts';
import { addressOf } from '../../logic/location.ts';

export function lockAddress({ namespace, name }: LockName): string {
  return addressOf('locks', { namespace, name });
}

/** The namespace as the command line takes it. */
export function namespaceFlag(namespace: string): readonly string[] {
  return namespace === 'default' ? [] : ['--namespace', namespace];
}
