/** Declarations of messages and stored rows, and the codecs made from them. */
export * from './codec.ts';
export * from './kinds.ts';
export { MalformedMessage, malformed } from './malformed.ts';
export type * from './shape.ts';
