import * as zlib from 'node:zlib';

type Crc32 = (data: Uint8Array, previous?: number) => number;

let table: Uint32Array | undefined;

function crcTable(): Uint32Array {
  if (table !== undefined) return table;
  table = new Uint32Array(256);
  for (let n = 0; n < 256; n++) {
    let c = n;
    for (let bit = 0; bit < 8; bit++) c = (c & 1) === 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    table[n] = c >>> 0;
  }
  return table;
}

/** The same checksum computed with a table, for runtimes whose zlib does not export it. */
export function crc32ByTable(data: Uint8Array, previous = 0): number {
  const lookup = crcTable();
  let crc = ~previous >>> 0;
  for (const byte of data) crc = (crc >>> 8) ^ (lookup[(crc ^ byte) & 0xff] ?? 0);
  return ~crc >>> 0;
}

/**
 * Node's function starts over when it is given no bytes at a null address, which is what an array over an empty
 * ArrayBuffer is: a checksum over several pieces would forget the earlier ones.
 */
function crc32Native(data: Uint8Array, previous = 0): number {
  return data.length === 0 ? previous : zlib.crc32(data, previous);
}

/** CRC-32 (ISO 3309), continued from `previous`. Node has a native one since 20.15 and 22.2. */
export const crc32: Crc32 = typeof zlib.crc32 === 'function' ? crc32Native : crc32ByTable;
