/**
 * Reads the fields of a protobuf message, for the few messages of etcd's storage (`mvccpb`, `leasepb`, `authpb`).
 *
 * PF1. Any bytes are decoded or are an error; a length is compared with the message before it is used.
 * PF2. Unknown fields are passed over, as the encoding demands, so newer versions of etcd may add some.
 */
import { damaged } from './etcd-file-error.ts';

export interface ProtoField {
  readonly number: number;
  /** Of a varint or a fixed number; 0n for bytes. */
  readonly value: bigint;
  /** Where the bytes of a field begin and end; both 0 for a number. */
  readonly start: number;
  readonly end: number;
}

const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];
const VARINT_BYTES_MAX = 10;

export function* protoFields(message: Buffer): Generator<ProtoField> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      const byte = message[at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << BigInt(7 * i);
      if (byte < 0x80) return value;
    }
    throw damaged('a number in a message cannot be decoded');
  };
  while (at < message.length) {
    const tag = Number(varint());
    const [number, type] = [Math.floor(tag / 8), tag % 8];
    if (type === VARINT) {
      yield { number, value: BigInt.asIntN(64, varint()), start: 0, end: 0 };
      continue;
    }
    const length = type === BYTES ? Number(varint()) : type === FIXED64 ? 8 : type === FIXED32 ? 4 : Number.NaN;
    if (!(at + length <= message.length)) throw damaged('a field of a message reaches beyond its end');
    if (type === BYTES) yield { number, value: 0n, start: at, end: at + length };
    at += length;
  }
}
