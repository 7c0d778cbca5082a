import { type FileHandle, open } from 'node:fs/promises';

/** A file, or bytes in memory, that can be read at any place. */
export interface ByteSource {
  readonly size: number;
  /** Returns fewer bytes only at the end. */
  read(at: number, length: number): Promise<Buffer>;
}

/** Opens a file and closes it after `use`, whatever the result. */
export async function withFile<T>(path: string, use: (source: ByteSource) => Promise<T>): Promise<T> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    return await use({ size, read: (at, length) => readAt(file, at, length) });
  } finally {
    await file.close();
  }
}

async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const out = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(out, filled, length - filled, at + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return out.subarray(0, filled);
}
