/** What calls need that are no commands and no queries. */
import type { PlainNeed } from '@remora/auth';

export const ANY_USER: readonly PlainNeed[] = [{ type: 'anyUser' }];

/** `what` completes "needs the role root to …". */
export function root(what: string): readonly PlainNeed[] {
  return [{ type: 'root', what }];
}
