/** What a caller needs for the calls of administration, at every door. */
import type { PlainNeed } from '@remora/auth';

export const ADMINISTERS: readonly PlainNeed[] = [{ type: 'root', what: 'administer the cluster' }];
export const LOOKS: readonly PlainNeed[] = [{ type: 'root', what: 'look at the cluster', looks: true }];
/** To see what is wrong, and to recover, when the masters are lost. */
export const RESCUES: readonly PlainNeed[] = [{ type: 'root', what: 'administer the cluster', withoutMasters: true }];
export const CHECKS: readonly PlainNeed[] = [
  { type: 'root', what: 'look at the cluster', withoutMasters: true, looks: true },
];
