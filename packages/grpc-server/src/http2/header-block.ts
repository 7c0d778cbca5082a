/** A header block that came in several frames: RFC 9113 §4.3 and §6.10. */
import type { Http2Limits } from './limits.ts';

export interface HeaderBlock {
  readonly streamId: number;
  readonly isEndStream: boolean;
  readonly parts: Buffer[];
  bytes: number;
  frames: number;
}

export function beginBlock(streamId: number, isEndStream: boolean): HeaderBlock {
  return { streamId, isEndStream, parts: [], bytes: 0, frames: -1 };
}

/** Adds a copy of the fragment. Returns the limit that it goes beyond, if it does. */
export function addFragment(block: HeaderBlock, limits: Http2Limits, fragment: Buffer): keyof Http2Limits | undefined {
  block.frames++;
  block.bytes += fragment.length;
  if (block.frames > limits.continuationFramesMax) return 'continuationFramesMax';
  if (block.bytes > limits.headerBlockBytesMax) return 'headerBlockBytesMax';
  block.parts.push(Buffer.from(fragment));
  return undefined;
}
