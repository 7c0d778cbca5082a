/**
 * Frames between the load and the nodes: as plain as can be, for it is not the load that is to be measured.
 *
 *   request  mode (8 bits), then per operation: group (32), slot (32), length (16), payload
 *   reply    per operation: slot (32), outcome (8)
 */
import { ENTRY_MODES, type EntryMode } from './messages.ts';

const OPERATION_HEAD_BYTES = 10;
const REPLY_BYTES = 5;

export const APPLIED = 0;
/** Not proposed, or overtaken by another leader. */
export const REFUSED = 1;

/** What the streams of the load are called at a node's port. */
export const LOAD_SERVICE = 'load';

/** One request for all of `slots`; a slot is one operation in flight. */
export function encodeRequest(
  slots: readonly number[],
  request: { readonly mode: EntryMode; readonly payload: Buffer; readonly groupOf: (slot: number) => number },
): Buffer {
  const { mode, payload, groupOf } = request;
  const out = Buffer.allocUnsafe(1 + slots.length * (OPERATION_HEAD_BYTES + payload.length));
  out[0] = ENTRY_MODES.indexOf(mode);
  let at = 1;
  for (const slot of slots) {
    out.writeUInt32LE(groupOf(slot), at);
    out.writeUInt32LE(slot, at + 4);
    out.writeUInt16LE(payload.length, at + 8);
    at += OPERATION_HEAD_BYTES;
    out.set(payload, at);
    at += payload.length;
  }
  return out;
}

export function modeOf(request: Buffer): EntryMode {
  return ENTRY_MODES[request[0] ?? 0] ?? 'single';
}

export function decodeRequest(
  request: Buffer,
  operation: (groupId: number, slot: number, payload: Buffer) => void,
): void {
  let at = 1;
  while (at < request.length) {
    const begin = at + OPERATION_HEAD_BYTES;
    const end = begin + request.readUInt16LE(at + 8);
    operation(request.readUInt32LE(at), request.readUInt32LE(at + 4), request.subarray(begin, end));
    at = end;
  }
}

export interface Reply {
  readonly slot: number;
  readonly outcome: number;
}

export function encodeReplies(replies: readonly Reply[]): Buffer {
  const out = Buffer.allocUnsafe(replies.length * REPLY_BYTES);
  let at = 0;
  for (const { slot, outcome } of replies) {
    out.writeUInt32LE(slot, at);
    out[at + 4] = outcome;
    at += REPLY_BYTES;
  }
  return out;
}

export function decodeReplies(frame: Buffer, reply: (slot: number, outcome: number) => void): void {
  for (let at = 0; at < frame.length; at += REPLY_BYTES) reply(frame.readUInt32LE(at), frame[at + 4] ?? REFUSED);
}
