/** Tries inputs in a separate thread, so that an input that hangs can be ended from outside. */
import { parentPort } from 'node:worker_threads';
import { fuzz } from '../engine.ts';
import { TARGETS } from '../targets.ts';

export interface Chunk {
  readonly target: string;
  readonly seed: number;
  readonly runs: number;
}

export interface ChunkResult {
  /** Absent if nothing was found. */
  readonly failure?: string;
}

const port = parentPort;
if (port !== null) port.on('message', (chunk: Chunk) => void answer(chunk).then((result) => port.postMessage(result)));

async function answer({ target: name, seed, runs }: Chunk): Promise<ChunkResult> {
  const target = TARGETS.find((one) => one.name === name);
  if (target === undefined) return { failure: `there is no target ${name}` };
  try {
    await fuzz(target, { seed, runs });
    return {};
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}
