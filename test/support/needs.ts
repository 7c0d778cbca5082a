/** What a test may need that a machine may lack. */
import { describe } from 'vitest';

/**
 * Declares a suite that needs something from the machine. If that is missing, its tests are skipped, and the name of
 * the suite says what is missing, so that every reporter shows it.
 */
export function describeWith(missing: string | undefined, name: string, tests: () => void): void {
  const shown = missing === undefined ? name : `${name} [skipped: ${missing}]`;
  describe.skipIf(missing !== undefined)(shown, tests);
}
