import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const PACKAGE = dirname(createRequire(import.meta.url).resolve('@remora/cli/package.json'));

/** The `remora` command as a release has it. `npm run build` bundles it. */
export const PROGRAM: string = join(PACKAGE, '../../dist/program/bin/remora.mjs');
