import type { HeaderField } from '../hpack/header-field.ts';

/** What a call's status, or the beginning of its answers, carries besides; names ending in `-bin` carry bytes. */
export type MetadataFields = Readonly<Record<string, string | Uint8Array>>;

const BINARY = '-bin';

/** The metadata of a request. Names are lower case. */
export class Metadata {
  readonly #fields: readonly HeaderField[];

  constructor(fields: readonly HeaderField[]) {
    this.#fields = fields;
  }

  /** The first value of this name. */
  get(name: string): string | undefined {
    return this.#fields.find((field) => field.name === name)?.value;
  }

  /** All values of this name. */
  getAll(name: string): readonly string[] {
    return this.#fields.filter((field) => field.name === name).map(({ value }) => value);
  }

  /** The bytes of all values of this name, which ends in `-bin`. One field may carry several, with commas between. */
  getBinary(name: string): readonly Buffer[] {
    return this.getAll(name).flatMap((value) => value.split(',').map((part) => Buffer.from(part.trim(), 'base64')));
  }

  /** The names and values of the user's own metadata, without the fields of HTTP and gRPC. */
  *[Symbol.iterator](): Generator<HeaderField> {
    for (const field of this.#fields) if (!isReserved(field.name)) yield field;
  }
}

const RESERVED = new Set(['te', 'content-type', 'content-length', 'user-agent', 'accept-encoding', 'host']);

function isReserved(name: string): boolean {
  return name.startsWith(':') || name.startsWith('grpc-') || RESERVED.has(name);
}

/** Header fields of metadata. Octets that a field cannot carry are replaced by `?`. */
export function metadataFields(metadata: MetadataFields): HeaderField[] {
  return Object.entries(metadata).map(([name, value]) => ({
    name: name.toLowerCase(),
    value: typeof value === 'string' && !name.endsWith(BINARY) ? asciiText(value) : base64(value),
  }));
}

function asciiText(value: string): string {
  return value.replace(/[^\x20-\x7e]/g, '?').trim();
}

function base64(value: string | Uint8Array): string {
  return Buffer.from(value as Uint8Array)
    .toString('base64')
    .replace(/=+$/, '');
}
