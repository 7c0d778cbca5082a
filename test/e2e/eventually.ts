export interface EventuallyOptions {
  /** A limit that detects hangs, unless the test is about this limit. */
  readonly timeoutMs?: number;
  readonly pollMs?: number;
}

/** On a busy machine, something that usually takes a second may take half a minute. */
const PATIENCE_MS = 60_000;

/**
 * Repeats the probe until it returns anything but undefined and false. A probe that throws is repeated too; the last
 * error is the cause of the time-out.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  options: EventuallyOptions = {},
): Promise<T> {
  const { timeoutMs = PATIENCE_MS, pollMs = 20 } = options;
  const endMs = performance.now() + timeoutMs;
  let cause: unknown;
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      if (error instanceof FinalError) throw error;
      cause = error;
    }
    if (performance.now() > endMs) throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause });
    await pause(pollMs);
  }
}

/** Thrown by a probe that knows that waiting is pointless. */
export class FinalError extends Error {
  override readonly name = 'FinalError';
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
