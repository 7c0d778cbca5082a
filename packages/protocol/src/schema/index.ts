/** Declarations of messages and stored rows, and what is made from them. */
export * from './codec.ts';
export * from './kinds.ts';
export { MalformedMessage, malformed } from './malformed.ts';
export type * from './shape.ts';
