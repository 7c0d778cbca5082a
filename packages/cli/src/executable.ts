import { fileURLToPath } from 'node:url';

/** The file that starts the command line. `bin/` is beside the folder of this file, compiled or bundled. */
export const EXECUTABLE: string = fileURLToPath(new URL('../bin/remora.mjs', import.meta.url));
