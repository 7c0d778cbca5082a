/** Writes bbolt databases as etcd's storage has them, independently of the reader: for its tests and as fuzz inputs. */
import { createHash } from 'node:crypto';

export type Rows = readonly (readonly [key: Buffer, value: Buffer])[];

export interface WriterOptions {
  readonly pageSize?: number;
  /** Buckets that are stored inside the root page, as bbolt does with small ones. */
  readonly inline?: readonly string[];
}

const HEADER = 16;
const ELEMENT = 16;
const [BRANCH, LEAF, META, FREELIST] = [0x01, 0x02, 0x04, 0x10];
const FIRST_PAGE = 3;

/** A page that was written: its id, and the first key below it. */
interface Written {
  readonly id: number;
  readonly key: Buffer;
}

class Pages {
  readonly size: number;
  readonly #pages: Buffer[] = [];

  constructor(size: number) {
    this.size = size;
  }

  get end(): number {
    return FIRST_PAGE + this.#pages.reduce((sum, page) => sum + page.length / this.size, 0);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#pages);
  }

  /** Appends a page, with as many further pages as it needs. */
  add(content: Buffer): number {
    const id = this.end;
    const pages = Math.max(1, Math.ceil(content.length / this.size));
    const page = Buffer.alloc(pages * this.size);
    page.set(content);
    page.writeBigUInt64LE(BigInt(id));
    page.writeUInt32LE(pages - 1, 12);
    this.#pages.push(page);
    return id;
  }
}

/** A database with these buckets, without the hash of a snapshot. */
export function boltFile(buckets: Readonly<Record<string, Rows>>, options: WriterOptions = {}): Buffer {
  const { pageSize = 4_096, inline = [] } = options;
  const pages = new Pages(pageSize);
  const names = Object.keys(buckets).sort();
  const root = names.map((name): readonly [Buffer, Buffer] => {
    const rows = buckets[name] ?? [];
    const isInline = inline.includes(name);
    const header = Buffer.alloc(16);
    if (!isInline) header.writeBigUInt64LE(BigInt(tree(pages, rows)));
    return [Buffer.from(name), isInline ? Buffer.concat([header, leaf(rows, 0)]) : header];
  });
  const rootId = pages.add(leaf(root, 1));
  const freelist = Buffer.alloc(pageSize);
  freelist.writeBigUInt64LE(2n);
  freelist.writeUInt16LE(FREELIST, 8);
  const metas = [8n, 7n].map((txid, id) => meta({ id, pageSize, root: rootId, end: pages.end, txid }));
  return Buffer.concat([...metas, freelist, pages.bytes]);
}

/** What `etcdctl snapshot save` makes of a database. */
export function withHash(database: Buffer): Buffer {
  return Buffer.concat([database, createHash('sha256').update(database).digest()]);
}

/** Returns the id of the root page. */
function tree(pages: Pages, rows: Rows): number {
  let level: readonly Written[] = groups(rows, pages.size).map((group) => ({
    id: pages.add(leaf(group, 0)),
    key: group[0]?.[0] ?? Buffer.alloc(0),
  }));
  while (level.length > 1) {
    const entries = level.map(({ key, id }): readonly [Buffer, Buffer, number] => [key, Buffer.alloc(0), id]);
    level = groups(entries, pages.size).map((group) => ({
      id: pages.add(branch(group.map(([key, , id]) => ({ key, id })))),
      key: group[0]?.[0] ?? Buffer.alloc(0),
    }));
  }
  return level[0]?.id ?? 0;
}

/** Divides rows so that each group fits a page; a row that is larger is in a group with the row before it. */
function groups<Row extends readonly [Buffer, Buffer, ...unknown[]]>(rows: readonly Row[], size: number): Row[][] {
  const all: Row[][] = [[]];
  let used = HEADER;
  for (const row of rows) {
    const bytes = ELEMENT + row[0].length + row[1].length;
    const group = all.at(-1) ?? [];
    if (group.length >= 2 && used + bytes > size) {
      all.push([row]);
      used = HEADER + bytes;
    } else {
      group.push(row);
      used += bytes;
    }
  }
  return all;
}

function leaf(rows: Rows, flags: 0 | 1): Buffer {
  const head = Buffer.alloc(HEADER + rows.length * ELEMENT);
  head.writeUInt16LE(LEAF, 8);
  head.writeUInt16LE(rows.length, 10);
  let at = head.length;
  for (const [i, [key, value]] of rows.entries()) {
    const element = HEADER + i * ELEMENT;
    for (const [n, field] of [flags, at - element, key.length, value.length].entries()) {
      head.writeUInt32LE(field, element + 4 * n);
    }
    at += key.length + value.length;
  }
  return Buffer.concat([head, ...rows.flat()]);
}

function branch(children: readonly Written[]): Buffer {
  const head = Buffer.alloc(HEADER + children.length * ELEMENT);
  head.writeUInt16LE(BRANCH, 8);
  head.writeUInt16LE(children.length, 10);
  let at = head.length;
  for (const [i, { key, id }] of children.entries()) {
    const element = HEADER + i * ELEMENT;
    head.writeUInt32LE(at - element, element);
    head.writeUInt32LE(key.length, element + 4);
    head.writeBigUInt64LE(BigInt(id), element + 8);
    at += key.length;
  }
  return Buffer.concat([head, ...children.map(({ key }) => key)]);
}

export interface MetaFields {
  readonly id: number;
  readonly pageSize: number;
  readonly root: number;
  readonly end: number;
  readonly txid: bigint;
  readonly version?: number;
}

/** A meta page, with a valid checksum. */
export function meta({ id, pageSize, root, end, txid, version = 2 }: MetaFields): Buffer {
  const page = Buffer.alloc(pageSize);
  page.writeBigUInt64LE(BigInt(id));
  page.writeUInt16LE(META, 8);
  const fields = page.subarray(HEADER);
  for (const [n, field] of [0xed0cdaed, version, pageSize, 0].entries()) fields.writeUInt32LE(field, 4 * n);
  for (const [n, field] of [BigInt(root), 0n, 2n, BigInt(end), txid].entries()) {
    fields.writeBigUInt64LE(field, 16 + 8 * n);
  }
  let hash = 0xcbf29ce484222325n;
  for (const byte of fields.subarray(0, 56)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  fields.writeBigUInt64LE(hash, 56);
  return page;
}
