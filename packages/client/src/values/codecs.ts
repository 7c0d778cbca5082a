/** Text and JSON as bytes, and back. Keys and values are bytes: a codec is always named. */
import { ServiceError, utf8, utf8Text } from '@remora/base';

/** A way to write values of one type as bytes. */
export interface Codec<T> {
  /** @throws ServiceError INVALID_ARGUMENT for a value that the codec cannot write. */
  encode(value: T): Uint8Array;
  /** @throws ServiceError INVALID_ARGUMENT for bytes that are not what the codec writes. */
  decode(bytes: Uint8Array): T;
}

/** JSON as bytes, for values, and for data of locks: `kv.put('users/ada', json.encode({ admin: true }))`. */
export const json = {
  /** @throws ServiceError INVALID_ARGUMENT for what JSON cannot express, such as a `bigint`, a function or a circle. */
  encode(value: unknown): Uint8Array {
    let text: string | undefined;
    try {
      text = JSON.stringify(value);
    } catch (cause) {
      throw new ServiceError('INVALID_ARGUMENT', `json: the value cannot be written as JSON: ${String(cause)}`, {
        cause,
      });
    }
    if (text !== undefined) return utf8(text);
    throw new ServiceError('INVALID_ARGUMENT', `json: a value of type ${typeof value} cannot be written as JSON`);
  },

  /** @throws ServiceError INVALID_ARGUMENT for bytes that are not JSON. */
  decode<T = unknown>(bytes: Uint8Array): T {
    try {
      return JSON.parse(text.decode(bytes)) as T;
    } catch (cause) {
      throw new ServiceError('INVALID_ARGUMENT', `json: the bytes are not JSON: ${String(cause)}`, { cause });
    }
  },
} satisfies Codec<unknown>;

/** Text as its UTF-8 bytes. */
export const text: Codec<string> = {
  encode(value) {
    if (typeof value === 'string' && value.isWellFormed()) return utf8(value);
    throw new ServiceError('INVALID_ARGUMENT', `text: expected well-formed text, got ${typeof value}`);
  },

  decode(bytes) {
    const decoded = bytes instanceof Uint8Array ? utf8Text(bytes) : undefined;
    if (decoded !== undefined) return decoded;
    throw new ServiceError('INVALID_ARGUMENT', 'text: the bytes are not UTF-8; use them as bytes');
  },
};
