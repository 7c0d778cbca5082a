/**
 * The wire form of merged heartbeats and their replies (design §5).
 *
 *   heartbeat   0xc1 version 0 | boot | sequence | count | first id, then differences, all varints
 *   reply       0xc1 version 1 | boot | sequence | replier's boot | count | (id difference, reason, term)…, all varints
 *
 * W1. The first byte distinguishes these frames from message frames (codec.ts).
 * W2. Ids grow strictly, so dense ids cost one byte each. A decoded frame has valid shape; otherwise `WireError` is
 *     thrown.
 * W3. A list of ids that did not change is neither encoded nor decoded again: on both sides it is the same array object
 *     as before, which shows the host that it did not change.
 */
import type { GroupId, Heartbeat, HeartbeatFrame, HeartbeatRefusal, HeartbeatReply } from '../ports.ts';
import { VARINT_BYTES_MAX, WIRE_VERSION, WireError, WireReader, WireWriter } from './wire-bytes.ts';

const MARK = 0xc1;
const KIND = { heartbeat: 0, reply: 1 } as const;
const HEADER_BYTES = 3;

/** The place of a reason in this list is its code on the wire: append only. */
const REASONS = ['noReplica', 'notFollowing'] as const satisfies readonly HeartbeatRefusal['reason'][];

/** Whether a frame is one of this codec (W1). */
export function isHeartbeatFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

/** Encodes the heartbeats from one node to one peer. */
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
    const out = frameWriter(KIND.heartbeat, 2 * VARINT_BYTES_MAX + this.#encoded.length);
    out.varint(frame.bootId);
    out.varint(frame.sequence);
    out.bytes(this.#encoded);
    return out.finish();
  }
}

/** Decodes the heartbeats from one peer. */
export class HeartbeatDecoder {
  #encoded: Uint8Array = new Uint8Array(0);
  #groups: readonly GroupId[] | undefined;

  /** Throws `WireError` for anything but a well-formed frame. */
  decode(bytes: Uint8Array): HeartbeatFrame {
    if (!isHeartbeatFrame(bytes)) throw new WireError('not a heartbeat');
    if (bytes[1] !== WIRE_VERSION) throw new WireError(`unknown wire version ${String(bytes[1])}`);
    const input = new WireReader(bytes, HEADER_BYTES);
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

  #decodeGroups(input: WireReader): readonly GroupId[] {
    const encoded = input.rest();
    if (this.#groups !== undefined && Buffer.compare(encoded, this.#encoded) === 0) return this.#groups; // W3
    const list = new WireReader(encoded, 0);
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
  const out = new WireWriter(VARINT_BYTES_MAX * (1 + groups.length));
  out.varint(groups.length);
  let last = 0;
  for (const id of groups) {
    out.varint(id - last);
    last = id;
  }
  return Uint8Array.from(out.finish());
}

function encodeReply({ bootId, sequence, replierBootId, refused }: HeartbeatReply): Buffer {
  const out = frameWriter(KIND.reply, VARINT_BYTES_MAX * (4 + 3 * refused.length));
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

function decodeReply(input: WireReader): HeartbeatReply {
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

function nextId(last: GroupId, input: WireReader): GroupId {
  const difference = input.varint();
  if (difference === 0) throw new WireError('group ids are not ascending');
  const id = last + difference;
  if (!Number.isSafeInteger(id)) throw new WireError('a group id is too large');
  return id;
}

function frameWriter(kind: number, bytesMax: number): WireWriter {
  const out = new WireWriter(HEADER_BYTES + bytesMax);
  out.byte(MARK);
  out.byte(WIRE_VERSION);
  out.byte(kind);
  return out;
}
