/**
 * Property tests run the same cases in every run of `npm test`, so that a failure comes from the change at hand. To run
 * other cases, set `REMORA_TEST_SEED` to a number or to `random`.
 */
import fc from 'fast-check';

const DEFAULT_SEED = 1;
const { REMORA_TEST_SEED: wanted = String(DEFAULT_SEED) } = process.env;

if (wanted !== 'random') {
  const seed = Number(wanted);
  if (!Number.isInteger(seed)) throw new Error(`REMORA_TEST_SEED is '${wanted}': write an integer, or 'random'`);
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
}
