import { asBuffer, type Bytes, EMPTY_BYTES, ServiceError } from '@remora/base';

/**
 * The protobuf message `remora.v1.PipeFrame { bytes body = 1; }`, written by hand: it is nothing but a tag and a
 * length before the body, and a generated codec would copy the body once more.
 */
const BODY_TAG = 0x0a;
const LENGTH_DELIMITED = 2;

export function encodePipeFrame(body: Bytes): Buffer {
  const header: number[] = [BODY_TAG];
  let length = body.length;
  while (length >= 0x80) {
    header.push((length & 0x7f) | 0x80);
    length >>>= 7;
  }
  header.push(length);
  const out = Buffer.allocUnsafe(header.length + body.length);
  out.set(header);
  out.set(body, header.length);
  return out;
}

/** The body as a slice of `bytes`. Fields that a newer peer may add are skipped; anything else is INVALID_ARGUMENT. */
export function decodePipeFrame(bytes: Bytes): Bytes {
  const reader = new Reader(bytes);
  let body: Bytes = EMPTY_BYTES;
  while (!reader.done) {
    const tag = reader.varint();
    const value = reader.field(tag & 7);
    if (tag === BODY_TAG) body = value;
  }
  return body;
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Bytes) {
    this.#bytes = asBuffer(bytes);
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) break;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw malformed();
  }

  field(wireType: number): Bytes {
    switch (wireType) {
      case 0:
        this.#varintOf64Bits();
        return EMPTY_BYTES;
      case 1:
        return this.#take(8);
      case LENGTH_DELIMITED:
        return this.#take(this.varint());
      case 5:
        return this.#take(4);
      default:
        throw malformed();
    }
  }

  #varintOf64Bits(): void {
    for (let i = 0; i < 10; i++) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw malformed();
      if (byte < 0x80) return;
    }
    throw malformed();
  }

  #take(length: number): Bytes {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw malformed();
    const slice = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return slice;
  }
}

function malformed(): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', 'malformed PipeFrame');
}
