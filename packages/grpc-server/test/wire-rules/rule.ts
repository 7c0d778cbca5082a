/**
 * The rules of RFC 9113 that name an error code for what a client sends, and some that forbid an error. Each row has
 * the octets that break the rule and what the server may do about it.
 */
import { encodeFields, type HeaderField } from '../../src/index.ts';
import { FLAG, FRAME, frame } from '../support/frames.ts';
import { data, fieldsOf, message } from '../support/raw-client.ts';

export interface WireRule {
  readonly section: string;
  readonly name: string;
  /** What has happened on stream 1 before; nothing by default. */
  readonly stream?: 'open' | 'half-closed' | 'closed';
  readonly bytes: Buffer;
  /** Instead of the usual greeting. */
  readonly greeting?: Buffer;
  /** Any of these; `nothing` is a connection and streams that go on. */
  readonly expect: readonly Reaction[];
  /** Whether node:http2 lets it pass, if it differs. */
  readonly reference?: 'passes' | 'refuses' | 'varies';
}

type CodeName =
  | 'noError'
  | 'protocolError'
  | 'flowControlError'
  | 'streamClosed'
  | 'frameSizeError'
  | 'refusedStream'
  | 'compressionError'
  | 'enhanceYourCalm';
export type Reaction = `GOAWAY ${CodeName}` | `RST_STREAM ${CodeName}` | 'closed' | 'nothing';

/** The server keeps the stream open. */
export const OPEN_PATH = '/test.Contract/Chat';
/** With this body, the server does not answer. */
export const WAIT_PATH = '/test.Contract/Unary';
export const WAIT_BODY = JSON.stringify({ wait: true });
export const ECHO_PATH = '/test.Contract/Echo';

export const PROTOCOL: readonly Reaction[] = ['GOAWAY protocolError'];
export const FRAME_SIZE: readonly Reaction[] = ['GOAWAY frameSizeError'];
export const COMPRESSION: readonly Reaction[] = ['GOAWAY compressionError'];
export const MALFORMED: readonly Reaction[] = ['RST_STREAM protocolError'];
export const NOTHING: readonly Reaction[] = ['nothing'];

export const WAITING = data(1, message(WAIT_BODY), FLAG.endStream);
export const BLOCK = encodeFields(fieldsOf(WAIT_PATH));
export const HEAD = FLAG.endHeaders;

export function headers(stream: number, flags: number, payload: Uint8Array): Buffer {
  return frame(FRAME.headers, flags, stream, payload);
}

export function continuation(stream: number, flags: number, payload: Uint8Array): Buffer {
  return frame(FRAME.continuation, flags, stream, payload);
}

/** A call that waits, with these fields. */
export function request(fields: readonly HeaderField[]): Buffer {
  return Buffer.concat([headers(1, HEAD, encodeFields(fields)), WAITING]);
}

export function withField(name: string, value: string): Buffer {
  return request([...fieldsOf(WAIT_PATH), { name, value }]);
}

export function without(name: string): Buffer {
  return request(fieldsOf(WAIT_PATH).filter((field) => field.name !== name));
}
