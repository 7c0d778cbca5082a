/**
 * The messages between the two ends of a snapshot's stream.
 *
 * M1. Every message is its kind (one byte), fixed-width numbers, then its body. Decoding checks shape and length; the
 *     result is valid, or `WireError` is thrown.
 * M2. A decoded chunk is a view of its message: to keep it longer than the message, copy it.
 */
import type { SnapshotHeader } from '../ports.ts';
import { decodeSnapshotHeader, encodeSnapshotHeader } from './codec.ts';
import { WireError } from './wire-bytes.ts';

/** Messages from the node that has the snapshot. */
export type SenderMessage =
  /** First on every stream. `attempt` counts the streams of a transfer from 1; above 1 it continues the transfer. */
  | { readonly type: 'open'; readonly id: string; readonly attempt: number; readonly header: SnapshotHeader }
  /** Chunks are numbered from 0. */
  | { readonly type: 'chunk'; readonly number: number; readonly bytes: Uint8Array }
  /** All `count` chunks were sent. */
  | { readonly type: 'finish'; readonly count: number }
  | { readonly type: 'abort'; readonly reason: string };

/**
 * Why a receiver refuses:
 *  - `busy`: not now; the same snapshot may be offered again later.
 *  - `declined`: the snapshot is not wanted.
 *  - `unknown`: the transfer is not known (any more).
 *  - `failed`: storing or installing went wrong.
 */
export type SnapshotRefusal = 'busy' | 'declined' | 'unknown' | 'failed';

/** Messages from the node that receives the snapshot. */
export type ReceiverMessage =
  /** Answer to `open`: the next chunk wanted, how many are stored, and how many unstored chunks may be sent. */
  | { readonly type: 'ready'; readonly wanted: number; readonly stored: number; readonly window: number }
  /** The first `stored` chunks are stored. */
  | { readonly type: 'stored'; readonly stored: number }
  /** Sent periodically while opening, storing a chunk or installing takes time. */
  | { readonly type: 'working' }
  | { readonly type: 'installed' }
  | { readonly type: 'refused'; readonly refusal: SnapshotRefusal; readonly reason: string };

const OPEN = 0;
const CHUNK = 1;
const FINISH = 2;
const ABORT = 3;

const READY = 0;
const STORED = 1;
const WORKING = 2;
const INSTALLED = 3;
const REFUSED = 4;

/** The place in this list is the code on the wire: append only. */
const REFUSALS = ['busy', 'declined', 'unknown', 'failed'] as const satisfies readonly SnapshotRefusal[];

/** Bytes of a transfer's id; in text it is hexadecimal. */
export const TRANSFER_ID_BYTES = 8;
const NUMBER_BYTES = 6;
const ATTEMPT_BYTES = 4;
/** Bytes of a chunk's message before the chunk. */
export const CHUNK_HEAD_BYTES = 1 + NUMBER_BYTES;
/** The limit for a reason, which is for people to read. */
const REASON_BYTES_MAX = 1024;

export function encodeSenderMessage(message: SenderMessage): Buffer {
  switch (message.type) {
    case 'open': {
      const head = Buffer.alloc(1 + TRANSFER_ID_BYTES + ATTEMPT_BYTES);
      head[0] = OPEN;
      head.write(message.id, 1, 'hex');
      head.writeUInt32BE(message.attempt, 1 + TRANSFER_ID_BYTES);
      return Buffer.concat([head, encodeSnapshotHeader(message.header)]);
    }
    case 'chunk': {
      const out = Buffer.allocUnsafe(CHUNK_HEAD_BYTES + message.bytes.length);
      writeChunkMessage(out, message.number, message.bytes);
      return out;
    }
    case 'finish':
      return withNumbers(FINISH, message.count);
    case 'abort':
      return Buffer.concat([Buffer.of(ABORT), reasonBytes(message.reason)]);
  }
}

/** Writes the message of a chunk into `out`, which has its length. */
export function writeChunkMessage(out: Buffer, number: number, bytes: Uint8Array): void {
  out[0] = CHUNK;
  out.writeUIntBE(number, 1, NUMBER_BYTES);
  out.set(bytes, CHUNK_HEAD_BYTES);
}

export function decodeSenderMessage(bytes: Uint8Array): SenderMessage {
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  switch (message[0]) {
    case OPEN: {
      const headBytes = 1 + TRANSFER_ID_BYTES + ATTEMPT_BYTES;
      if (message.length < headBytes) throw new WireError('truncated snapshot opening');
      const id = message.toString('hex', 1, 1 + TRANSFER_ID_BYTES);
      const attempt = message.readUInt32BE(1 + TRANSFER_ID_BYTES);
      return { type: 'open', id, attempt, header: decodeSnapshotHeader(message.subarray(headBytes)) };
    }
    case CHUNK: {
      if (message.length <= CHUNK_HEAD_BYTES) throw new WireError('truncated snapshot chunk');
      return {
        type: 'chunk',
        number: message.readUIntBE(1, NUMBER_BYTES),
        bytes: message.subarray(CHUNK_HEAD_BYTES),
      };
    }
    case FINISH:
      return { type: 'finish', count: numberAt(message, 0, 1) };
    case ABORT:
      return { type: 'abort', reason: message.toString('utf8', 1) };
    default:
      throw new WireError('unexpected message on a snapshot stream');
  }
}

export function encodeReceiverMessage(message: ReceiverMessage): Buffer {
  switch (message.type) {
    case 'ready':
      return withNumbers(READY, message.wanted, message.stored, message.window);
    case 'stored':
      return withNumbers(STORED, message.stored);
    case 'working':
      return Buffer.of(WORKING);
    case 'installed':
      return Buffer.of(INSTALLED);
    case 'refused':
      return Buffer.concat([Buffer.of(REFUSED, REFUSALS.indexOf(message.refusal)), reasonBytes(message.reason)]);
  }
}

export function decodeReceiverMessage(bytes: Uint8Array): ReceiverMessage {
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  switch (message[0]) {
    case READY: {
      const [wanted, stored, window] = [0, 1, 2].map((place) => numberAt(message, place, 3));
      if (wanted === undefined || stored === undefined || window === undefined || stored > wanted || window < 1) {
        throw new WireError('a snapshot answer contradicts itself');
      }
      return { type: 'ready', wanted, stored, window };
    }
    case STORED:
      return { type: 'stored', stored: numberAt(message, 0, 1) };
    case WORKING:
      return { type: 'working' };
    case INSTALLED:
      return { type: 'installed' };
    case REFUSED: {
      const refusal = REFUSALS[message[1] ?? REFUSALS.length];
      if (refusal === undefined) throw new WireError('unknown kind of snapshot refusal');
      return { type: 'refused', refusal, reason: message.toString('utf8', 2) };
    }
    default:
      throw new WireError('unexpected answer on a snapshot stream');
  }
}

function withNumbers(kind: number, ...numbers: readonly number[]): Buffer {
  const out = Buffer.alloc(1 + numbers.length * NUMBER_BYTES);
  out[0] = kind;
  for (const [place, value] of numbers.entries()) out.writeUIntBE(value, 1 + place * NUMBER_BYTES, NUMBER_BYTES);
  return out;
}

/** The number at `place` of a message that consists of `count` numbers. */
function numberAt(message: Buffer, place: number, count: number): number {
  if (message.length !== 1 + count * NUMBER_BYTES) throw new WireError('a snapshot message has a wrong length');
  return message.readUIntBE(1 + place * NUMBER_BYTES, NUMBER_BYTES);
}

function reasonBytes(reason: string): Buffer {
  return Buffer.from(reason).subarray(0, REASON_BYTES_MAX);
}
