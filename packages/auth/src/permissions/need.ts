import type { Bytes } from '@remora/base';
import type { LockVerb } from '@remora/protocol';

/** One thing that a request must be allowed to do. A request may have several, and needs all of them. */
export type Need =
  /** Plain keys of `[key, end)`. An empty `end`: to the last key; absent: one key. */
  | { readonly type: 'keys'; readonly access: 'read' | 'write'; readonly key: Bytes; readonly end?: Bytes }
  | { readonly type: 'lock'; readonly verb: LockVerb; readonly namespace: string; readonly name: Bytes }
  /** All locks of a namespace whose names begin with the prefix. An empty namespace: of all namespaces. */
  | { readonly type: 'locks'; readonly verb: LockVerb; readonly namespace: string; readonly prefix: Bytes }
  /** The role root. `what` completes "needs the role root to …". */
  | { readonly type: 'root'; readonly what: string }
  /** Any user who has logged in. */
  | { readonly type: 'anyUser' };
