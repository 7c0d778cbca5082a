/**
 * The meta pages of a bbolt database: the first two pages of the file. Each commit of bbolt writes one of them, so the
 * valid one with the higher transaction id counts. Numbers are those of the machine that wrote the file; all platforms
 * that etcd supports are little-endian.
 *
 * Source: the file format of go.etcd.io/bbolt, version 2 (`internal/common/meta.go`, `page.go`).
 */
import type { ByteSource } from './byte-source.ts';
import { EtcdFileError } from './etcd-file-error.ts';

export const PAGE_HEADER_BYTES = 16;
const MAGIC = 0xed0cdaed;
const VERSION = 2;
const CHECKSUM_AT = 56;
const META_BYTES = 64;
/** bbolt uses the page size of the machine, which is a power of two. */
const PAGE_SIZES = Array.from({ length: 7 }, (_, i) => 1_024 << i);

export interface BoltMeta {
  readonly pageSize: number;
  /** The page of the root bucket. */
  readonly root: bigint;
  /** All pages in use have lower ids. */
  readonly pagesMax: bigint;
  readonly txid: bigint;
}

/** @throws EtcdFileError when neither meta page is valid. */
export async function readMeta(source: ByteSource): Promise<BoltMeta> {
  const first = await readPage(source, 0);
  const valid: BoltMeta[] = first.meta === undefined ? [] : [first.meta];
  // If the first one is damaged, the page size is unknown.
  const sizes = first.meta === undefined ? PAGE_SIZES : [first.meta.pageSize];
  let version = first.version;
  for (const at of sizes) {
    const second = await readPage(source, at);
    version ??= second.version;
    if (second.meta?.pageSize === at) valid.push(second.meta);
  }
  const [newest] = valid.sort((a, b) => (a.txid > b.txid ? -1 : 1));
  if (newest !== undefined) return newest;
  if (version === undefined) throw new EtcdFileError('is not a snapshot of etcd: it is not a bbolt database');
  if (version === VERSION) throw new EtcdFileError('is damaged: neither of its meta pages has a valid checksum');
  throw new EtcdFileError(`is a bbolt database of version ${version}; this version of remora reads version ${VERSION}`);
}

/** `version` is undefined if there is no meta page. */
async function readPage(
  source: ByteSource,
  at: number,
): Promise<{ readonly meta?: BoltMeta; readonly version?: number }> {
  const page = await source.read(at, PAGE_HEADER_BYTES + META_BYTES);
  if (page.length < PAGE_HEADER_BYTES + META_BYTES) return {};
  const bytes = page.subarray(PAGE_HEADER_BYTES);
  if (bytes.readUInt32LE(0) !== MAGIC) return {};
  const version = bytes.readUInt32LE(4);
  const pageSize = bytes.readUInt32LE(8);
  const whole = bytes.readBigUInt64LE(CHECKSUM_AT) === fnv1a64(bytes.subarray(0, CHECKSUM_AT));
  if (version !== VERSION || !whole || !PAGE_SIZES.includes(pageSize)) return { version };
  const root = bytes.readBigUInt64LE(16);
  const pagesMax = bytes.readBigUInt64LE(40);
  return { version, meta: { pageSize, root, pagesMax, txid: bytes.readBigUInt64LE(48) } };
}

/** The FNV-1a hash of 64 bits. Source: draft-eastlake-fnv. */
function fnv1a64(bytes: Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}
