/**
 * The wire form of messages between nodes: Raft frames and snapshot headers.
 *
 *   frame    0xc0 version | message…
 *   message  group, kind and flag (1 byte), from, to, term, then by kind:
 *            append  prevIndex, prevTerm, commit, count, entry…
 *   entry    flags (1 byte), term unless the same as before, length, data
 *
 * All numbers are varints (wire-bytes.ts).
 *
 * C1. A change of meaning, order or type of a position changes `WIRE_VERSION`; a test pins the encoding of one message
 *     of each kind.
 * C2. Decoding checks every shape: the result is valid, or `WireError` is thrown. Later code does not check again
 *     (conventions 5).
 * C3. A decoded entry shares memory with at most `SHARED_BYTES` beside its own bytes, or twice its own: it never pins a
 *     frame that is much larger than itself (conventions 7).
 */
import { unreachable } from '@remora/base';
import type { ConfState, Entry, LogPosition, Message, SnapshotMeta } from '../../core/types.ts';
import type { GroupMessage, SnapshotHeader } from '../ports.ts';
import { VARINT_BYTES_MAX, WIRE_VERSION, WireError, WireReader, WireWriter } from './wire-bytes.ts';

const MARK = 0xc0;
const FRAME_HEAD_BYTES = 2;

/** The place of a type in this list is its code on the wire (C1): append only. */
const MESSAGE_TYPES = [
  'preVote',
  'preVoteResponse',
  'vote',
  'voteResponse',
  'append',
  'appendResponse',
  'heartbeat',
  'heartbeatResponse',
  'snapshot',
  'timeoutNow',
] as const satisfies readonly Message['type'][];

const TYPE_CODES: Readonly<Record<Message['type'], number>> = {
  preVote: 0,
  preVoteResponse: 1,
  vote: 2,
  voteResponse: 3,
  append: 4,
  appendResponse: 5,
  heartbeat: 6,
  heartbeatResponse: 7,
  snapshot: 8,
  timeoutNow: 9,
};

/** A message's one boolean, in the byte of its type's code. */
const FLAG = 0x80;

const ENTRY_CONF = 1;
const ENTRY_SAME_TERM = 2;

const MESSAGE_HEAD_BYTES_MAX = 1 + 10 * VARINT_BYTES_MAX;
const ENTRY_HEAD_BYTES_MAX = 1 + 2 * VARINT_BYTES_MAX;
const ENTRY_BYTES_MIN = 2;

/** Small entries of one frame are copied out of it in pieces of this size (C3). */
const SHARED_BYTES = 8 * 1024;
/** A larger entry gets a copy of its own. */
const SMALL_ENTRY_BYTES = 2 * 1024;

export function encodeFrame(messages: readonly GroupMessage[]): Buffer {
  let bytesMax = FRAME_HEAD_BYTES;
  for (const { message } of messages) bytesMax += encodedBytesMax(message);
  const out = new WireWriter(bytesMax);
  out.byte(MARK);
  out.byte(WIRE_VERSION);
  for (const { groupId, message } of messages) writeMessage(out, groupId, message);
  return out.finish();
}

/** Throws `WireError` for anything but a well-formed frame. */
export function decodeFrame(frame: Uint8Array): GroupMessage[] {
  if (frame[0] !== MARK) throw new WireError('not a frame');
  if (frame[1] !== WIRE_VERSION) throw new WireError(`unknown wire version ${String(frame[1])}`);
  const reader = new MessageReader(frame, FRAME_HEAD_BYTES);
  const messages: GroupMessage[] = [];
  while (!reader.atEnd) messages.push(reader.message());
  return messages;
}

/** An upper bound, not far above the actual size, of a message in a frame: used to divide and bound frames. */
export function encodedBytesMax(message: Message): number {
  if (message.type === 'snapshot') {
    const { voters, votersOutgoing, learners, learnersNext } = message.snapshot.conf;
    const ids = voters.length + votersOutgoing.length + learners.length + learnersNext.length;
    return MESSAGE_HEAD_BYTES_MAX + VARINT_BYTES_MAX * ids;
  }
  if (message.type !== 'append') return MESSAGE_HEAD_BYTES_MAX;
  let bytes = MESSAGE_HEAD_BYTES_MAX;
  for (const entry of message.entries) bytes += ENTRY_HEAD_BYTES_MAX + entry.data.length;
  return bytes;
}

export function encodeSnapshotHeader({ groupId, from, to, term, meta }: SnapshotHeader): Buffer {
  const out = new WireWriter(1 + encodedBytesMax({ type: 'snapshot', from, to, term, snapshot: meta }));
  out.byte(WIRE_VERSION);
  out.varint(groupId);
  out.varint(from);
  out.varint(to);
  out.varint(term);
  writeMeta(out, meta);
  return out.finish();
}

export function decodeSnapshotHeader(bytes: Uint8Array): SnapshotHeader {
  if (bytes[0] !== WIRE_VERSION) throw new WireError(`unknown wire version ${String(bytes[0])}`);
  const reader = new WireReader(bytes, 1);
  const [groupId, from, to, term] = [reader.varint(), reader.varint(), reader.varint(), reader.varint()];
  const meta = readMeta(reader);
  reader.end();
  return { groupId, from, to, term, meta };
}

// ------------------------------------------------------------------------------------------------ writing

function writeMessage(out: WireWriter, groupId: number, message: Message): void {
  out.varint(groupId);
  out.byte(TYPE_CODES[message.type] | (flagOf(message) ? FLAG : 0));
  out.varint(message.from);
  out.varint(message.to);
  out.varint(message.term);
  switch (message.type) {
    case 'preVote':
    case 'vote':
      out.varint(message.lastIndex);
      out.varint(message.lastTerm);
      writeCommitted(out, message.committed);
      return;
    case 'preVoteResponse':
    case 'voteResponse':
      writeCommitted(out, message.committed);
      return;
    case 'append':
      out.varint(message.prevIndex);
      out.varint(message.prevTerm);
      out.varint(message.commit);
      writeEntries(out, message.entries);
      return;
    case 'appendResponse':
      out.varint(message.index);
      out.varint(message.hintIndex);
      out.varint(message.hintTerm);
      out.varint(message.commit);
      return;
    case 'heartbeat':
    case 'heartbeatResponse':
      out.varint(message.commit);
      out.varint(message.readContext);
      return;
    case 'snapshot':
      writeMeta(out, message.snapshot);
      return;
    case 'timeoutNow':
      return;
    default:
      unreachable(message);
  }
}

/** Index 0 stands for an absent position. */
function writeCommitted(out: WireWriter, committed: LogPosition | undefined): void {
  out.varint(committed?.index ?? 0);
  out.varint(committed?.term ?? 0);
}

function readCommitted(reader: WireReader): { readonly committed?: LogPosition } {
  const index = reader.varint();
  const term = reader.varint();
  return index === 0 ? {} : { committed: { index, term } };
}

function flagOf(message: Message): boolean {
  switch (message.type) {
    case 'vote':
      return message.force;
    case 'preVoteResponse':
    case 'voteResponse':
    case 'appendResponse':
      return message.reject;
    default:
      return false;
  }
}

/** Indexes follow from `prevIndex`. */
function writeEntries(out: WireWriter, entries: readonly Entry[]): void {
  out.varint(entries.length);
  let term = -1;
  for (const entry of entries) {
    const { data } = entry;
    out.byte((entry.type === 'conf' ? ENTRY_CONF : 0) | (entry.term === term ? ENTRY_SAME_TERM : 0));
    if (entry.term !== term) out.varint(entry.term);
    term = entry.term;
    out.varint(data.length);
    out.bytes(data);
  }
}

function writeMeta(out: WireWriter, { index, term, conf }: SnapshotMeta): void {
  out.varint(index);
  out.varint(term);
  out.byte(conf.autoLeave ? 1 : 0);
  out.varints(conf.voters);
  out.varints(conf.votersOutgoing);
  out.varints(conf.learners);
  out.varints(conf.learnersNext);
}

// ------------------------------------------------------------------------------------------------ reading

class MessageReader extends WireReader {
  readonly #frame: Uint8Array;
  /** The current piece of the frame for small entries, and its start in the frame. */
  #piece: Uint8Array;
  #pieceFrom = 0;

  constructor(frame: Uint8Array, at: number) {
    super(frame, at);
    this.#frame = frame;
    this.#piece = frame.length <= SHARED_BYTES ? frame : new Uint8Array(0);
  }

  message(): GroupMessage {
    const groupId = this.varint();
    const kind = this.byte();
    const type = MESSAGE_TYPES[kind & ~FLAG];
    if (type === undefined) throw new WireError('unknown message type');
    const envelope = { from: this.varint(), to: this.varint(), term: this.varint() };
    return { groupId, message: this.#body(type, envelope, (kind & FLAG) !== 0) };
  }

  #body(
    type: Message['type'],
    envelope: { readonly from: number; readonly to: number; readonly term: number },
    flag: boolean,
  ): Message {
    const { from, to, term } = envelope;
    // Object literals evaluate in order, so the positions are read as they are written.
    switch (type) {
      case 'preVote':
        return { type, from, to, term, lastIndex: this.varint(), lastTerm: this.varint(), ...readCommitted(this) };
      case 'vote': {
        const lastIndex = this.varint();
        const lastTerm = this.varint();
        return { type, from, to, term, lastIndex, lastTerm, force: flag, ...readCommitted(this) };
      }
      case 'preVoteResponse':
      case 'voteResponse':
        return { type, from, to, term, reject: flag, ...readCommitted(this) };
      case 'append': {
        const prevIndex = this.varint();
        const prevTerm = this.varint();
        const commit = this.varint();
        return { type, from, to, term, prevIndex, prevTerm, entries: this.#entries(prevIndex), commit };
      }
      case 'appendResponse': {
        const index = this.varint();
        const hintIndex = this.varint();
        const hintTerm = this.varint();
        return { type, from, to, term, reject: flag, index, hintIndex, hintTerm, commit: this.varint() };
      }
      case 'heartbeat':
      case 'heartbeatResponse':
        return { type, from, to, term, commit: this.varint(), readContext: this.varint() };
      case 'snapshot':
        return { type, from, to, term, snapshot: readMeta(this) };
      case 'timeoutNow':
        return { type, from, to, term };
      default:
        return unreachable(type);
    }
  }

  #entries(prevIndex: number): Entry[] {
    const count = this.count(ENTRY_BYTES_MIN);
    const entries: Entry[] = [];
    let term = 0;
    for (let i = 1; i <= count; i++) {
      const flags = this.byte();
      if (flags > (ENTRY_CONF | ENTRY_SAME_TERM)) throw new WireError('unknown entry type');
      if ((flags & ENTRY_SAME_TERM) === 0) term = this.varint();
      else if (i === 1) throw new WireError('the first entry does not name its term');
      const length = this.varint();
      const data = this.#data(this.skip(length), length);
      entries.push({ index: prevIndex + i, term, type: (flags & ENTRY_CONF) === 0 ? 'normal' : 'conf', data });
    }
    if (!Number.isSafeInteger(prevIndex + count)) throw new WireError('an index is too large');
    return entries;
  }

  /** An entry's bytes (C3). */
  #data(from: number, length: number): Uint8Array {
    const to = from + length;
    if (2 * length >= this.#frame.length) return this.#frame.subarray(from, to);
    if (length > SMALL_ENTRY_BYTES && this.#piece !== this.#frame) return Buffer.from(this.#frame.subarray(from, to));
    if (to > this.#pieceFrom + this.#piece.length) {
      this.#piece = Buffer.from(this.#frame.subarray(from, from + SHARED_BYTES));
      this.#pieceFrom = from;
    }
    return this.#piece.subarray(from - this.#pieceFrom, to - this.#pieceFrom);
  }
}

function readMeta(reader: WireReader): SnapshotMeta {
  const index = reader.varint();
  const term = reader.varint();
  const autoLeave = reader.byte();
  if (autoLeave > 1) throw new WireError('a flag is neither 0 nor 1');
  const conf: ConfState = {
    voters: reader.varints(),
    votersOutgoing: reader.varints(),
    learners: reader.varints(),
    learnersNext: reader.varints(),
    autoLeave: autoLeave === 1,
  };
  return { index, term, conf };
}
