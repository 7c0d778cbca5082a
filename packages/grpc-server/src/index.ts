export { HeaderDecoder, type HeaderDecoderLimits } from './hpack/header-decoder.ts';
export { encodeFields, HeaderEncoder } from './hpack/header-encoder.ts';
export { type DecodedField, type HeaderField, HpackError } from './hpack/header-field.ts';
export type { PendingTimer, Timers } from './timers.ts';
