/**
 * The head of a lock as it is stored: mostly it is read by the next command on the lock only, and gone after that.
 *
 * H1. A head is handed over to where it is stored, and changes no more: the next command works on a copy.
 * H2. One with data is stored as bytes, as the data is a slice of the log entry that it came with, which would stay in
 *     memory beside it.
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
