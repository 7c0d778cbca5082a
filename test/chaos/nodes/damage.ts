/** Flips bits on the disk of a node that is not running. */
import {
  closeSync,
  cpSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { NodeProcess } from '../../e2e/node-process.ts';

/** The node and the location of its disk. */
export type DataOfNode = Pick<NodeProcess, 'name' | 'dataDir' | 'logPath'>;

/** Restores the disk. Undefined: there is too little on the disk to damage it in a way that must be detected. */
export type Mend = (() => void) | undefined;

/**
 * The beginning of every frame of the log, and the first part of its header
 * (packages/raft/src/multi/log/log-format.ts).
 */
const FRAME_MAGIC = Buffer.from([0xf7, 0x52, 0x4d, 0xa1]);
const FRAME_HEADER_BYTES = 32;
/** Several batches. */
const LEVEL_LOG_BYTES_MIN = 4_096;

interface Place {
  readonly path: string;
  readonly offset: number;
}

/** Flips a bit in the middle of the log. With few writes the damage would look like a write that a crash tore. */
export function damageLog(node: DataOfNode): Mend {
  const place = middleOf(join(node.dataDir, 'log'));
  return place === undefined ? undefined : damage([place]);
}

/**
 * Flips a bit at the beginning of each table of the engine's LevelDB, at the length or the first row of its first
 * block, so that no row of that block can be read. A start reads the first rows of all, which are in one of these
 * blocks. LevelDB cannot replace a table that it cannot read, so the bits can be restored. It may remove a table that
 * was already obsolete.
 */
export function damageEngine(node: DataOfNode): Mend {
  const dir = join(node.dataDir, 'engine');
  const tables = readdirSync(dir).filter((file) => file.endsWith('.ldb'));
  return tables.length === 0 ? undefined : damage(tables.map((file) => ({ path: join(dir, file), offset: 0 })));
}

/**
 * Flips a bit in the middle of LevelDB's own log. Whenever LevelDB opens this log, it drops what it cannot read and
 * removes the log. Therefore the disk is restored from a copy.
 */
export function damageEngineLog(node: DataOfNode): Mend {
  const dir = join(node.dataDir, 'engine');
  const [longest] = readdirSync(dir)
    .filter((file) => file.endsWith('.log'))
    .map((file) => ({ path: join(dir, file), bytes: statSync(join(dir, file)).size }))
    .sort((a, b) => b.bytes - a.bytes);
  if (longest === undefined || longest.bytes < LEVEL_LOG_BYTES_MIN) return undefined;
  const copy = join(dirname(node.logPath), `${node.name}-engine`);
  replace(copy, dir);
  flipBit({ path: longest.path, offset: longest.bytes >>> 1 });
  return () => replace(dir, copy);
}

function replace(dir: string, by: string): void {
  rmSync(dir, { recursive: true, force: true });
  cpSync(by, dir, { recursive: true });
}

function damage(places: readonly Place[]): () => void {
  for (const place of places) flipBit(place);
  return () => {
    for (const place of places) if (existsSync(place.path)) flipBit(place);
  };
}

/**
 * A byte of the first frame in the newest segment that has further frames. The frames after it show that it is not a
 * torn tail.
 */
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
