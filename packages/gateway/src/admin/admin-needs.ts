/** What a caller needs for the calls of administration, at every door. */
import type { PlainNeed } from '@remora/auth';

export const ADMINISTERS: readonly PlainNeed[] = [{ type: 'root', what: 'administer the cluster' }];
export const LOOKS: readonly PlainNeed[] = [{ type: 'root', what: 'look at the cluster', looks: true }];
/** To look at what everybody has done is for root alone, and changes nothing. */
export const AUDITS: readonly PlainNeed[] = [{ type: 'root', what: 'read the audit log', looks: true }];
/** To see what is wrong, and to recover, when the masters are lost. */
export const RESCUES: readonly PlainNeed[] = [{ type: 'root', what: 'administer the cluster', withoutMasters: true }];
export const CHECKS: readonly PlainNeed[] = [
  { type: 'root', what: 'look at the cluster', withoutMasters: true, looks: true },
];
