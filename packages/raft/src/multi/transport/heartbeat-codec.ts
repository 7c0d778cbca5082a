/**
 * The wire form of merged heartbeats and their replies (design §5).
 *
 *   heartbeat   0xc1 version 0 | boot | sequence | count | first id, then differences, all varints
 *   reply       0xc1 version 1 | boot | sequence | replier's boot | count | (id difference, reason, term)…, all varints
 *
 * W1. The first byte tells these frames from others: msgpack never uses 0xc1.
 * W2. Ids grow strictly, so dense ids cost one byte each. What decodes has valid shape, or `WireError` is thrown.
 * W3. A list of ids that did not change is neither encoded nor decoded again: it is the same array object on either
 *     side as before, by which the host sees that it did not change.
 */
import type { GroupId, Heartbeat, HeartbeatFrame, HeartbeatRefusal, HeartbeatReply } from '../ports.ts';
import { WIRE_VERSION, WireError } from './codec.ts';

const MARK = 0xc1;
const KIND = { heartbeat: 0, reply: 1 } as const;
const HEADER_BYTES = 3;
const VARINT_BYTES_MAX = 8;

/** The place of a reason in this list is its code on the wire: append only. */
const REASONS = ['noReplica', 'notFollowing'] as const satisfies readonly HeartbeatRefusal['reason'][];

/** Whether a frame is one of this codec (W1). */
export function isHeartbeatFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

/** Encodes what one node says to one peer. */
export class HeartbeatEncoder {
  #groups: readonly GroupId[] | undefined;
  #encoded: Uint8Array = new Uint8Array(0);

  encode(frame: HeartbeatFrame): Buffer {
    return frame.type === 'heartbeat' ? this.#heartbeat(frame) : encodeReply(frame);
  }

  #heartbeat(frame: Heartbeat): Buffer {
    if (frame.groups !== this.#groups) {
      this.#groups = frame.groups;
      this.#encoded = encodeGroups(frame.groups); // W3
    }
    const out = new VarintWriter(2 + Math.ceil(this.#encoded.length / VARINT_BYTES_MAX), KIND.heartbeat);
    out.varint(frame.bootId);
    out.varint(frame.sequence);
    out.bytes(this.#encoded);
    return out.finish();
  }
}

/** Decodes what one peer says. */
export class HeartbeatDecoder {
  #encoded: Uint8Array = new Uint8Array(0);
  #groups: readonly GroupId[] | undefined;

  /** Throws `WireError` for anything but a well-formed frame. */
  decode(bytes: Uint8Array): HeartbeatFrame {
    if (!isHeartbeatFrame(bytes)) throw new WireError('not a heartbeat');
    if (bytes[1] !== WIRE_VERSION) throw new WireError(`unknown wire version ${String(bytes[1])}`);
    const input = new VarintReader(bytes, HEADER_BYTES);
    switch (bytes[2]) {
      case KIND.heartbeat:
        return {
          type: 'heartbeat',
          bootId: input.varint(),
          sequence: input.varint(),
          groups: this.#decodeGroups(input),
        };
      case KIND.reply:
        return decodeReply(input);
      default:
        throw new WireError('an unknown kind of heartbeat');
    }
  }

  #decodeGroups(input: VarintReader): readonly GroupId[] {
    const encoded = input.rest();
    if (this.#groups !== undefined && Buffer.compare(encoded, this.#encoded) === 0) return this.#groups; // W3
    const list = new VarintReader(encoded, 0);
    const count = list.count(1);
    const groups: GroupId[] = new Array(count);
    let id = 0;
    for (let i = 0; i < count; i++) {
      id = nextId(id, list);
      groups[i] = id;
    }
    list.end();
    this.#encoded = Uint8Array.from(encoded);
    this.#groups = groups;
    return groups;
  }
}

function encodeGroups(groups: readonly GroupId[]): Uint8Array {
  const out = new VarintWriter(1 + groups.length);
  out.varint(groups.length);
  let last = 0;
  for (const id of groups) {
    out.varint(id - last);
    last = id;
  }
  return Uint8Array.from(out.finish());
}

function encodeReply({ bootId, sequence, replierBootId, refused }: HeartbeatReply): Buffer {
  const out = new VarintWriter(4 + 3 * refused.length, KIND.reply);
  out.varint(bootId);
  out.varint(sequence);
  out.varint(replierBootId);
  out.varint(refused.length);
  let last = 0;
  for (const { groupId, reason, term } of refused) {
    out.varint(groupId - last);
    out.varint(REASONS.indexOf(reason));
    out.varint(term);
    last = groupId;
  }
  return out.finish();
}

function decodeReply(input: VarintReader): HeartbeatReply {
  const bootId = input.varint();
  const sequence = input.varint();
  const replierBootId = input.varint();
  const count = input.count(3);
  const refused: HeartbeatRefusal[] = [];
  let id = 0;
  for (let i = 0; i < count; i++) {
    id = nextId(id, input);
    const reason = REASONS[input.varint()];
    if (reason === undefined) throw new WireError('an unknown reason');
    refused.push({ groupId: id, reason, term: input.varint() });
  }
  input.end();
  return { type: 'reply', bootId, sequence, replierBootId, refused };
}

function nextId(last: GroupId, input: VarintReader): GroupId {
  const difference = input.varint();
  if (difference === 0) throw new WireError('group ids do not grow');
  const id = last + difference;
  if (!Number.isSafeInteger(id)) throw new WireError('a group id is too large');
  return id;
}

/** Little-endian base 128, up to 2^53 − 1: beyond 32 bits without bit operations. */
class VarintWriter {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(count: number, kind?: number) {
    this.#buffer = Buffer.allocUnsafe(HEADER_BYTES + VARINT_BYTES_MAX * count);
    if (kind === undefined) return;
    this.#buffer[0] = MARK;
    this.#buffer[1] = WIRE_VERSION;
    this.#buffer[2] = kind;
    this.#at = HEADER_BYTES;
  }

  varint(value: number): void {
    let left = value;
    while (left >= 0x80) {
      this.#buffer[this.#at++] = (left % 0x80) | 0x80;
      left = Math.floor(left / 0x80);
    }
    this.#buffer[this.#at++] = left;
  }

  bytes(bytes: Uint8Array): void {
    this.#buffer.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  finish(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }
}

class VarintReader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new WireError('a heartbeat is cut short');
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
      scale *= 0x80;
    }
    throw new WireError('a number is too large');
  }

  /** How many items follow, of at least `bytesEach`: never more than there are bytes for. */
  count(bytesEach: number): number {
    const count = this.varint();
    if (count * bytesEach > this.#bytes.length - this.#at) throw new WireError('a list is cut short');
    return count;
  }

  rest(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw new WireError('bytes are left over');
  }
}
