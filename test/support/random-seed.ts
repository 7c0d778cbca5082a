/**
 * Property tests run the same cases in every run of `npm test`, so that a change is judged by what it changes. Other
 * cases: `REMORA_TEST_SEED=random`, or a number.
 */
import fc from 'fast-check';

const DEFAULT_SEED = 1;
const { REMORA_TEST_SEED: wanted = String(DEFAULT_SEED) } = process.env;

if (wanted !== 'random') {
  const seed = Number(wanted);
  if (!Number.isInteger(seed)) throw new Error(`REMORA_TEST_SEED is '${wanted}': write an integer, or 'random'`);
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
}
