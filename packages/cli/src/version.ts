import { createRequire } from 'node:module';

/** The version of this program, from its package. */
export const VERSION: string = createRequire(import.meta.url)('../package.json').version;
