import { type Bytes, isErrorCode, Packable, ServiceError } from '@remora/base';
import { asCount, asFields, asText, invalid } from '../internal/codec/check.ts';
import { packVersioned, unpackMeasuredVersioned, unpackVersioned } from '../internal/codec/wire.ts';

/**
 * A frame is a version byte and a MessagePack array of items, each an array `[kind, id, ...]`. All items that one side
 * sends in one turn of its loop go into one frame. The caller's side chooses the ids, and does not reuse them while a
 * link lives. Methods are named once per link: an item `method` binds a number to a name before the number is used.
 */
const FRAME_FORMAT_VERSION = 1;

/** Items from the calling side. */
export const ASK = {
  /** `[0, number, name]` */
  method: 0,
  /** `[1, id, method number, request]` */
  call: 1,
  /** `[2, id]`: the caller no longer waits, or the stream is over. */
  cancel: 2,
  /** `[3, id, method number, request]` */
  open: 3,
  /** `[4, id, request]`: a further message on a stream. */
  message: 4,
  /** `[5, id, count]`: that many messages of the stream were consumed. */
  credit: 5,
} as const;

/** Items from the serving side. */
export const ANSWER = {
  /** `[0, id, reply]` */
  reply: 0,
  /** `[1, id, error]` */
  error: 1,
  /** `[2, id, message]` */
  message: 2,
  /** `[3, id, error or null]` */
  end: 3,
} as const;

export type Item = readonly unknown[];

/** `roughBytes`: the sum of the rough sizes of the items, if it is known. */
export function encodeFrame(items: readonly Item[], roughBytes = 0): Buffer {
  return packVersioned(FRAME_FORMAT_VERSION, items, roughBytes);
}

export type DecodedItem = readonly [kind: unknown, id: number, ...rest: unknown[]];

/** Throws `INVALID_ARGUMENT` for anything that is not a frame. */
export function decodeFrame(frame: Bytes): readonly DecodedItem[] {
  return asItems(unpackVersioned(FRAME_FORMAT_VERSION, frame, 'frame'));
}

/** The same, with the number of bytes of each item. */
export function decodeMeasuredFrame(frame: Bytes): {
  readonly items: readonly DecodedItem[];
  readonly sizes: readonly number[];
} {
  const { value, sizes } = unpackMeasuredVersioned(FRAME_FORMAT_VERSION, frame, 'frame');
  return { items: asItems(value), sizes };
}

function asItems(items: unknown): readonly DecodedItem[] {
  if (!Array.isArray(items)) throw invalid('frame');
  for (const item of items) {
    if (!Array.isArray(item) || item.length < 2 || item.length > 4) throw invalid('frame item');
    asCount(item[1], 'frame item id');
  }
  return items;
}

/** Errors are sent with code, message and details; the cause stays in its process. */
export function encodeError(error: ServiceError): unknown[] {
  return [error.code, error.message, error.details ?? null];
}

export function decodeError(raw: unknown): ServiceError {
  const f = asFields(raw, 3, 'error');
  const code = asText(f[0], 'error.code');
  const message = asText(f[1], 'error.message');
  // A newer peer may know codes that this one does not.
  const known = isErrorCode(code) ? code : 'INTERNAL';
  const details = f[2];
  if (details === null || typeof details !== 'object') return new ServiceError(known, message);
  return new ServiceError(known, message, { details: { ...details } });
}

/** The bytes of longer text are measured; for shorter text the characters are counted, which is faster. */
const SHORT_TEXT = 64;

/**
 * The approximate size of `value` when encoded: exact for the bytes and strings that make messages large. Limits on
 * queues use it, before anything is encoded.
 */
export function roughSize(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return 3 + (value.length > SHORT_TEXT ? Buffer.byteLength(value) : value.length);
    case 'object': {
      if (value === null) return 1;
      if (value instanceof Uint8Array) return value.length + 5;
      if (value instanceof Packable) return value.size;
      let size = 3;
      if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++) size += roughSize(value[i]);
      } else {
        for (const [key, field] of Object.entries(value)) size += key.length + 1 + roughSize(field);
      }
      return size;
    }
    case 'function':
    case 'symbol':
      // If it were found only when its frame is packed, it would block everything else on the link.
      throw new ServiceError('INVALID_ARGUMENT', `a ${typeof value} cannot be sent`);
    default:
      return 9;
  }
}
