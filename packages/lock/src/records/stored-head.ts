/**
 * The head of a lock as it is stored. Mostly only the next command on the lock reads it, and replaces it.
 *
 * H1. A stored head does not change any more: the next command works on a copy.
 * H2. A head with data is stored as bytes: the data are a slice of the log entry that they came with, and would keep
 *     the whole entry in memory.
 */
import type { Bytes, ResidentValue, Unencoded } from '@remora/base';
import { decodeHead, encodeHead, type Head } from './records.ts';

class StoredHead implements Unencoded {
  readonly head: Readonly<Head>;

  constructor(head: Readonly<Head>) {
    this.head = head;
  }

  encode(): Bytes {
    return encodeHead(this.head);
  }
}

export function storedHead(head: Readonly<Head>): ResidentValue {
  const hasData = head.hold !== undefined && head.hold.holder.data.length > 0;
  return hasData ? encodeHead(head) : new StoredHead(head); // H2
}

export function headOf(stored: ResidentValue): Head {
  if (stored instanceof StoredHead) return { ...stored.head }; // H1
  return decodeHead(stored instanceof Uint8Array ? stored : stored.encode());
}
