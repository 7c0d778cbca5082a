/** Bytes of nested transactions: more levels than any stack has, created in time linear in their number. */

/** `TxnRequest.success` and `RequestOp.request_txn`, of wire type "length-delimited". */
const SUCCESS = 0x12;
const REQUEST_TXN = 0x22;

/** A transaction in a transaction, `depth` times, with `innermost` (a `TxnRequest`) at the bottom. */
export function nestedTxn(depth: number, innermost: Uint8Array = new Uint8Array(0)): Buffer {
  const heads: Buffer[] = [];
  let length = innermost.length;
  for (let i = 0; i < depth; i++) {
    for (const tag of [REQUEST_TXN, SUCCESS]) {
      const head = Buffer.from([tag, ...varint(length)]);
      heads.push(head);
      length += head.length;
    }
  }
  return Buffer.concat([...heads.reverse(), innermost]);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let left = value; ; left >>>= 7) {
    bytes.push(left < 0x80 ? left : (left & 0x7f) | 0x80);
    if (left < 0x80) return bytes;
  }
}
