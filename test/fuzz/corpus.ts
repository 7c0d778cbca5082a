/**
 * Inputs that once failed, stored as files: `corpus/<target>/<what-it-was>.hex`. The content is hexadecimal, with any
 * spaces and line breaks, and `xx*N` means a byte repeated N times.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIR = process.env.FUZZ_CORPUS ?? fileURLToPath(new URL('./corpus', import.meta.url));

export function keptInputs(target: string): readonly Uint8Array[] {
  const dir = join(DIR, target);
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .sort()
    .map((name) => parseHex(readFileSync(join(dir, name), 'utf8')));
}

/** The targets with stored inputs. */
export function keptTargets(): readonly string[] {
  return existsSync(DIR) ? readdirSync(DIR) : [];
}

export function parseHex(text: string): Uint8Array {
  const parts = text.split(/\s+/).filter((part) => part !== '');
  return Buffer.concat(
    parts.map((part) => {
      const [digits = '', count = '1'] = part.split('*');
      if (!/^([0-9a-f]{2})+$/.test(digits) || !/^\d+$/.test(count)) throw new Error(`not hexadecimal: ${part}`);
      return Buffer.concat(new Array<Buffer>(Number(count)).fill(Buffer.from(digits, 'hex')));
    }),
  );
}
