import { closeSync, openSync, readdirSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { NodeProcess } from '../../e2e/node-process.ts';

/** Begins every frame of the log, and is the first part of its header (packages/raft/src/multi/log/log-format.ts). */
const FRAME_MAGIC = Buffer.from([0xf7, 0x52, 0x4d, 0xa1]);
const FRAME_HEADER_BYTES = 32;

/**
 * Turns a bit in the middle of the log of a node that does not run; the returned function turns it back. Undefined: it
 * has too few writes, so that the damage would pass for a write that a crash tore.
 */
export function damageLog(node: NodeProcess): (() => void) | undefined {
  const place = middleOf(join(node.dataDir, 'log'));
  if (place === undefined) return undefined;
  flipBit(place);
  return () => flipBit(place);
}

interface Place {
  readonly path: string;
  readonly offset: number;
}

/** A byte of the first frame in the newest segment that has some more behind it: those show that it is no torn tail. */
function middleOf(dir: string): Place | undefined {
  for (const file of readdirSync(dir).sort().reverse()) {
    const path = join(dir, file);
    const bytes = readFileSync(path);
    const first = bytes.indexOf(FRAME_MAGIC);
    const second = first < 0 ? -1 : bytes.indexOf(FRAME_MAGIC, first + FRAME_HEADER_BYTES);
    if (second >= 0 && bytes.indexOf(FRAME_MAGIC, second + FRAME_HEADER_BYTES) >= 0) {
      return { path, offset: first + FRAME_HEADER_BYTES + 1 };
    }
  }
  return undefined;
}

function flipBit({ path, offset }: Place): void {
  const fd = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(fd, byte, 0, 1, offset);
  byte[0] = (byte[0] ?? 0) ^ 1;
  writeSync(fd, byte, 0, 1, offset);
  closeSync(fd);
}
