/** One promise, the observation, and whether the promise was kept. */
export interface Judged {
  readonly what: string;
  readonly found: string;
  readonly holds: boolean;
}

/** Prints the judgements. Returns the exit code. */
export function printVerdict(judged: readonly Judged[]): number {
  for (const { what, found, holds } of judged)
    console.log(`${holds ? 'ok    ' : 'FAILED'}  ${what}\n          ${found}`);
  const failed = judged.filter(({ holds }) => !holds).length;
  console.log(failed === 0 ? 'passed' : `failed: ${failed} of ${judged.length}`);
  return failed === 0 ? 0 : 1;
}

/** @throws UsageError */
export function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new UsageError(`--${name} is a whole number above 0, not "${text}"`);
}

export class UsageError extends Error {
  override readonly name = 'UsageError';
}
