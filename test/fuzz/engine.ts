/**
 * Runs a target on many inputs from a seed.
 *
 * E1. A run fails on an error that the target does not expect, on memory out of proportion to the input, and on an
 *     input that takes longer than any linear algorithm could.
 * E2. The same target, seed and number of runs give the same inputs. A failure reports them, and its input is shrunk.
 * E3. Memory counts only when an input takes too much each time it is tried: what a process loads or compiles once (a
 *     module imported on first use, a worker thread that starts) is not the input's doing.
 * E4. Inputs that once failed are stored as files and run first, in every form (`corpus.ts`).
 */
import { getHeapStatistics } from 'node:v8';
import fc from 'fast-check';
import { keptInputs } from './corpus.ts';
import { inputs } from './mutations.ts';
import { FuzzViolation, MEMORY_BASE_DEFAULT, MEMORY_FACTOR_DEFAULT, type Target } from './target.ts';

/** A limit that detects hangs, not a measure of speed: an input of 256 KiB takes milliseconds. */
const INPUT_MS_MAX = 10_000;

/** How often an input may take too much memory before it fails the run (E3). */
const MEMORY_ATTEMPTS = 3;

/** How much of an input is printed. The command repeats the whole input. */
const SHOWN_BYTES = 512;

export interface FuzzRun {
  readonly seed: number;
  readonly runs: number;
}

/** Throws an error with the failing input and the command that repeats it. */
export async function fuzz(target: Target, { seed, runs }: FuzzRun): Promise<void> {
  await target.prepare?.();
  const corpus = [...target.corpus(), ...keptInputs(target.name)];
  for (const input of corpus) await attempt(target, input, () => '');
  const property = fc.asyncProperty(inputs(corpus), async (input) => await check(target, input));
  const result = await fc.check(property, { seed, numRuns: runs, endOnFailure: false });
  if (!result.failed) return;
  const [input = new Uint8Array(0)] = result.counterexample ?? [];
  await attempt(target, input, () => `\npnpm fuzz --target ${target.name} --seed ${seed} --runs ${runs}`);
  const { errorInstance: cause } = result;
  const what = `failed once and not again, with seed ${seed}: ${String(cause)}`;
  throw new FuzzViolation(`${target.name}: ${what}\ninput: ${hex(input)}`, { cause });
}

async function attempt(target: Target, input: Uint8Array, replay: () => string): Promise<void> {
  try {
    await check(target, input);
  } catch (cause) {
    const error = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    throw new FuzzViolation(`${target.name}: ${error}\ninput: ${hex(input)}${replay()}`, { cause });
  }
}

/** One input (E1). */
async function check(target: Target, input: Uint8Array): Promise<void> {
  const began = performance.now();
  const used = await leastMemory(target, input);
  if (used > memoryBound(target, input)) {
    throw new FuzzViolation(`${input.length} bytes of input took ${used} bytes of memory`);
  }
  const elapsed = performance.now() - began;
  if (elapsed > INPUT_MS_MAX) throw new FuzzViolation(`the input took ${Math.round(elapsed)} ms`);
}

/** Bytes of memory that decoding took, at the attempt that took least (E3). One attempt, unless it took too much. */
async function leastMemory(target: Target, input: Uint8Array): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < MEMORY_ATTEMPTS && least > memoryBound(target, input); attempt += 1) {
    const before = memoryBytes();
    await decode(target, input);
    least = Math.min(least, memoryBytes() - before);
  }
  return least;
}

async function decode(target: Target, input: Uint8Array): Promise<void> {
  try {
    const decoding = target.decode(input);
    if (decoding !== undefined) await decoding;
  } catch (error) {
    if (!target.expected(error)) throw error;
  }
}

function memoryBound(target: Target, input: Uint8Array): number {
  const { memoryBaseBytes = MEMORY_BASE_DEFAULT, memoryFactor = MEMORY_FACTOR_DEFAULT } = target;
  return memoryBaseBytes + memoryFactor * input.length;
}

/** Garbage collections in between make the result smaller, never larger. */
function memoryBytes(): number {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return used_heap_size + external_memory;
}

function hex(input: Uint8Array): string {
  const text = Buffer.from(input.subarray(0, SHOWN_BYTES)).toString('hex');
  return input.length > SHOWN_BYTES ? `${text}… (${input.length} bytes)` : text;
}
