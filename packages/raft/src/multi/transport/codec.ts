/**
 * The wire form of what nodes say to each other: Raft frames and snapshot headers.
 *
 * C1. Everything is a positional array in msgpack, led by `WIRE_VERSION`. A change of meaning, order or type of a
 *     position changes the version; a test pins the encoding of one message of each kind.
 * C2. Decoding checks every shape: what comes out is a valid value or `WireError` is thrown. Nothing behind it
 *     checks again (conventions 5).
 * C3. Bytes that leave `decodeFrame` never pin a frame that is much larger than themselves (conventions 7).
 */
import { copyBytes, unreachable } from '@remora/base';
import { Packr, Unpackr } from 'msgpackr';
import type { ConfState, Entry, Message, SnapshotMeta } from '../../core/types.ts';
import type { GroupMessage, SnapshotHeader } from '../ports.ts';

/** Of frames, heartbeats and snapshot streams. 2: merged heartbeats. */
export const WIRE_VERSION = 2;

/** Bytes from a peer that are not a valid frame. The stream they came on is closed. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

const packr = new Packr({ useRecords: false, variableMapSize: true });
const unpackr = new Unpackr({ useRecords: false, int64AsType: 'number' });

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

/** An entry carries at most this share of a frame's bytes before it is kept in place instead of copied (C3). */
const KEEP_IN_FRAME_SHARE = 0.5;

export function encodeFrame(messages: readonly GroupMessage[]): Buffer {
  return packr.pack([WIRE_VERSION, messages.map(packMessage)]);
}

/** Throws `WireError` for anything but a well-formed frame. */
export function decodeFrame(frame: Uint8Array): GroupMessage[] {
  const items = new Fields(unpackVersioned(frame), 'frame').skip(1).array();
  const copyBelow = frame.length * KEEP_IN_FRAME_SHARE;
  return items.map((item) => unpackMessage(item, copyBelow));
}

/** Bytes a message takes in a frame, roughly and never far too low: the measure for cutting and bounding frames. */
export function approximateSize(message: Message): number {
  if (message.type !== 'append') return 48;
  let size = 48;
  for (const entry of message.entries) size += entry.data.length + 24;
  return size;
}

export function encodeSnapshotHeader(header: SnapshotHeader): Buffer {
  const { groupId, from, to, term, meta } = header;
  return packr.pack([WIRE_VERSION, groupId, from, to, term, packMeta(meta)]);
}

export function decodeSnapshotHeader(bytes: Uint8Array): SnapshotHeader {
  const fields = new Fields(unpackVersioned(bytes), 'snapshot header').skip(1);
  const groupId = fields.integer();
  const from = fields.integer();
  const to = fields.integer();
  const term = fields.integer();
  return { groupId, from, to, term, meta: unpackMeta(fields.array()) };
}

function unpackVersioned(bytes: Uint8Array): readonly unknown[] {
  let value: unknown;
  try {
    value = unpackr.unpack(bytes);
  } catch (cause) {
    throw new WireError('not msgpack', { cause });
  }
  if (!Array.isArray(value)) throw new WireError('not an array');
  if (value[0] !== WIRE_VERSION) throw new WireError(`unknown wire version ${String(value[0])}`);
  return value;
}

// ------------------------------------------------------------------------------------------------ messages

function packMessage({ groupId, message }: GroupMessage): unknown[] {
  const head = [groupId, TYPE_CODES[message.type], message.from, message.to, message.term];
  switch (message.type) {
    case 'preVote':
      return [...head, message.lastIndex, message.lastTerm];
    case 'vote':
      return [...head, message.lastIndex, message.lastTerm, message.force];
    case 'preVoteResponse':
    case 'voteResponse':
      return [...head, message.reject];
    case 'append':
      return [...head, message.prevIndex, message.prevTerm, message.commit, packEntries(message.entries)];
    case 'appendResponse':
      return [...head, message.reject, message.index, message.hintIndex, message.hintTerm, message.commit];
    case 'heartbeat':
    case 'heartbeatResponse':
      return [...head, message.commit, message.readContext];
    case 'snapshot':
      return [...head, packMeta(message.snapshot)];
    case 'timeoutNow':
      return head;
    default:
      return unreachable(message);
  }
}

function unpackMessage(item: unknown, copyBelow: number): GroupMessage {
  const fields = new Fields(item, 'message');
  const groupId = fields.integer();
  const type = MESSAGE_TYPES[fields.integer()];
  const envelope = { from: fields.integer(), to: fields.integer(), term: fields.integer() };
  if (type === undefined) throw new WireError('unknown message type');
  return { groupId, message: unpackBody(type, envelope, fields, copyBelow) };
}

function unpackBody(
  type: Message['type'],
  envelope: { readonly from: number; readonly to: number; readonly term: number },
  f: Fields,
  copyBelow: number,
): Message {
  // Object literals evaluate in order, so the positions are read as they are written.
  switch (type) {
    case 'preVote':
      return { type, ...envelope, lastIndex: f.integer(), lastTerm: f.integer() };
    case 'vote':
      return { type, ...envelope, lastIndex: f.integer(), lastTerm: f.integer(), force: f.boolean() };
    case 'preVoteResponse':
    case 'voteResponse':
      return { type, ...envelope, reject: f.boolean() };
    case 'append': {
      const prevIndex = f.integer();
      const prevTerm = f.integer();
      const commit = f.integer();
      const entries = unpackEntries(f.array(), prevIndex, copyBelow);
      return { type, ...envelope, prevIndex, prevTerm, entries, commit };
    }
    case 'appendResponse': {
      const reject = f.boolean();
      const index = f.integer();
      const hintIndex = f.integer();
      const hintTerm = f.integer();
      return { type, ...envelope, reject, index, hintIndex, hintTerm, commit: f.integer() };
    }
    case 'heartbeat':
    case 'heartbeatResponse':
      return { type, ...envelope, commit: f.integer(), readContext: f.integer() };
    case 'snapshot':
      return { type, ...envelope, snapshot: unpackMeta(f.array()) };
    case 'timeoutNow':
      return { type, ...envelope };
    default:
      return unreachable(type);
  }
}

/** Indexes follow from `prevIndex`, so an entry is three positions of one flat array: term, kind, data. */
function packEntries(entries: readonly Entry[]): unknown[] {
  const flat: unknown[] = [];
  for (const entry of entries) flat.push(entry.term, entry.type === 'conf' ? 1 : 0, entry.data);
  return flat;
}

function unpackEntries(flat: readonly unknown[], prevIndex: number, copyBelow: number): Entry[] {
  if (flat.length % 3 !== 0) throw new WireError('entries are cut short');
  const fields = new Fields(flat, 'entries');
  const entries: Entry[] = [];
  for (let i = 0; i < flat.length / 3; i++) {
    const term = fields.integer();
    const kind = fields.integer();
    if (kind > 1) throw new WireError('unknown entry type');
    const data = fields.bytes();
    entries.push({
      index: prevIndex + 1 + i,
      term,
      type: kind === 1 ? 'conf' : 'normal',
      data: data.length < copyBelow ? copyBytes(data) : data,
    });
  }
  return entries;
}

function packMeta(meta: SnapshotMeta): unknown[] {
  const { voters, votersOutgoing, learners, learnersNext, autoLeave } = meta.conf;
  return [meta.index, meta.term, voters, votersOutgoing, learners, learnersNext, autoLeave];
}

function unpackMeta(items: readonly unknown[]): SnapshotMeta {
  const f = new Fields(items, 'snapshot meta');
  const index = f.integer();
  const term = f.integer();
  const conf: ConfState = {
    voters: f.integers(),
    votersOutgoing: f.integers(),
    learners: f.integers(),
    learnersNext: f.integers(),
    autoLeave: f.boolean(),
  };
  return { index, term, conf };
}

/** Reads the positions of an array in order, checking each (C2). Further positions are a later version's and ignored. */
class Fields {
  readonly #items: readonly unknown[];
  readonly #what: string;
  #next = 0;

  constructor(items: unknown, what: string) {
    if (!Array.isArray(items)) throw new WireError(`${what}: not an array`);
    this.#items = items;
    this.#what = what;
  }

  skip(count: number): this {
    this.#next += count;
    return this;
  }

  integer(): number {
    return this.#check(this.#items[this.#next], isCount, 'integer');
  }

  boolean(): boolean {
    return this.#check(this.#items[this.#next], isBoolean, 'boolean');
  }

  bytes(): Uint8Array {
    return this.#check(this.#items[this.#next], isBytes, 'bytes');
  }

  array(): readonly unknown[] {
    return this.#check(this.#items[this.#next], isArray, 'array');
  }

  integers(): number[] {
    return this.#check(this.#items[this.#next], isCounts, 'integers');
  }

  #check<T>(value: unknown, test: (value: unknown) => value is T, wanted: string): T {
    if (!test(value)) throw new WireError(`${this.#what}: position ${this.#next} is not ${wanted}`);
    this.#next++;
    return value;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
const isArray = (value: unknown): value is readonly unknown[] => Array.isArray(value);
const isCounts = (value: unknown): value is number[] => Array.isArray(value) && value.every(isCount);
