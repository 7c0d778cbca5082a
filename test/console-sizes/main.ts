import { consoleSizes } from './console-main.ts';

/** Returns the exit code. `clusterFile`: the program of the simulated cluster. */
export async function main(args: readonly string[], clusterFile: string): Promise<number> {
  try {
    return await consoleSizes(args, clusterFile);
  } catch (error) {
    if (!isUsageError(error)) throw error;
    console.error(`${error.message} (--help says more)`);
    return 2;
  }
}

/** Our own usage errors, and those of `parseArgs`. */
function isUsageError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return error.name === 'UsageError' || ('code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
}
