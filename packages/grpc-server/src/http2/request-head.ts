/** What RFC 9113 §8.2 and §8.3 ask of the header list of a request, and of its trailers. */
import { type DecodedField, fieldBytes } from '../hpack/header-field.ts';

export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly fields: readonly DecodedField[];
  /** The length of the body, if the request states it; otherwise -1. */
  readonly contentLength: number;
  /** Why the request is malformed, if it is. */
  readonly malformed: string | undefined;
  /** Bytes of memory that an open stream keeps by its head, if they are worth counting; otherwise 0. */
  readonly keptBytes: number;
  /** What the user of the connection has worked out about this head. One head may begin many requests. */
  parsed: unknown;
}

/** §8.2.2. */
const CONNECTION_FIELDS = new Set(['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade']);
/** Smaller lists are not counted. The decoder keeps those that repeat, one for all of their streams. */
const COUNTED_BYTES_MIN = 4 << 10;
const DIGITS = /^\d{1,15}$/;

/** Heads of lists that the decoder keeps and returns again. It freezes those, and no others. */
const HEADS = new WeakMap<readonly DecodedField[], RequestHead>();

export function requestHead(fields: readonly DecodedField[]): RequestHead {
  if (!Object.isFrozen(fields)) return parse(fields);
  let head = HEADS.get(fields);
  if (head === undefined) {
    head = parse(fields);
    HEADS.set(fields, head);
  }
  return head;
}

/** Returns why trailers are malformed, if they are. */
export function trailersProblem(fields: readonly DecodedField[]): string | undefined {
  for (const field of fields) {
    if (field.malformed) return `an octet that is not allowed in '${field.name}'`;
    if (isPseudo(field.name)) return `'${field.name}' in trailers`;
  }
  return undefined;
}

function isPseudo(name: string): boolean {
  return name.charCodeAt(0) === 0x3a;
}

interface Pseudo {
  method: string | undefined;
  path: string | undefined;
  scheme: string | undefined;
  authority: string | undefined;
}

function parse(fields: readonly DecodedField[]): RequestHead {
  const pseudo: Pseudo = { method: undefined, path: undefined, scheme: undefined, authority: undefined };
  let malformed: string | undefined;
  let contentLength = -1;
  let isRegular = false;
  let bytes = 0;
  for (const field of fields) {
    const { name, value } = field;
    bytes += fieldBytes(field);
    if (field.malformed) malformed ??= `an octet that is not allowed in '${name}'`;
    if (isPseudo(name)) malformed ??= isRegular ? `'${name}' behind another field` : setPseudo(pseudo, name, value);
    else {
      isRegular = true;
      if (name === 'content-length') {
        const stated = DIGITS.test(value) ? Number(value) : -1;
        if (stated < 0 || (contentLength >= 0 && contentLength !== stated)) malformed ??= 'an invalid content-length';
        contentLength = stated;
      } else if (CONNECTION_FIELDS.has(name) || (name === 'te' && value !== 'trailers')) {
        malformed ??= `the field '${name}: ${value.slice(0, 64)}'`;
      }
    }
  }
  const { method = '', path = '' } = pseudo;
  malformed ??= missing(pseudo);
  const keptBytes = bytes < COUNTED_BYTES_MIN || Object.isFrozen(fields) ? 0 : bytes;
  return { method, path, fields, contentLength, malformed, keptBytes, parsed: undefined };
}

/** Returns what is wrong with it, if anything is. */
function setPseudo(pseudo: Pseudo, name: string, value: string): string | undefined {
  const key = name.slice(1);
  if (key !== 'method' && key !== 'path' && key !== 'scheme' && key !== 'authority') return `the field '${name}'`;
  if (pseudo[key] !== undefined) return `'${name}' twice`;
  pseudo[key] = value;
  return undefined;
}

/** §8.3.1; §8.5 for CONNECT. */
function missing({ method, path, scheme, authority }: Pseudo): string | undefined {
  if (method === undefined) return "no ':method'";
  if (method === 'CONNECT') return authority === undefined ? "CONNECT without ':authority'" : undefined;
  if (scheme === undefined) return "no ':scheme'";
  return path === undefined || path === '' ? "no ':path'" : undefined;
}
