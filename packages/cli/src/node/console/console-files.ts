import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** A file of the console, as it is sent. */
export interface ConsoleFile {
  readonly contentType: string;
  readonly body: Buffer;
  readonly gzipped: Buffer;
  /** Its name changes with its content, so browsers may keep it forever. */
  readonly isImmutable: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The folder of the files whose names have a digest of their content. */
const HASHED = 'assets/';

/**
 * Reads all files of the console, some 200 kB, and compresses them once. They are in memory from then on: an upgrade of
 * the program on disk does not mix two releases.
 * @returns the files by their paths in the directory.
 */
export function readConsoleFiles(directory: string): ReadonlyMap<string, ConsoleFile> {
  const files = new Map<string, ConsoleFile>();
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const contentType = TYPES[extname(entry.name)];
    if (!entry.isFile() || contentType === undefined) continue;
    const file = join(entry.parentPath, entry.name);
    const path = file.slice(join(directory, '/').length).replaceAll('\\', '/');
    const body = readFileSync(file);
    files.set(path, { contentType, body, gzipped: gzipSync(body, { level: 9 }), isImmutable: path.startsWith(HASHED) });
  }
  return files;
}
