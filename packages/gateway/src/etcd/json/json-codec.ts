import { ServiceError } from '@remora/base';
import { ETCD_SCHEMA, type EtcdField } from '@remora/protocol/etcd';
import { JsonNumber, type JsonValue } from './json-reader.ts';

/**
 * Messages of etcd's API as JSON, in the form of etcd's gateway (grpc-gateway, protobuf's JSON mapping).
 *
 * JC1. Names in requests are those of the protobuf file (`range_end`) or camel case (`rangeEnd`). Unknown names are
 *      skipped. `null` means the same as an absent field.
 * JC2. Numbers of 64 bits are strings in responses; requests may have them as strings or as whole numbers, of which no
 *      digit is lost. Bytes are base64, in requests also in the alphabet for URLs and without padding. Enums are names,
 *      in requests also numbers.
 * JC3. Responses have the names of the protobuf file, in the order of the field numbers, and no field with its default.
 */
type Fields = Record<string, unknown>;

/** @throws {ServiceError} INVALID_ARGUMENT, which names the field. */
export function fromJson(type: string, value: JsonValue | undefined): unknown {
  return messageOf(type, value ?? null, '');
}

/** The message as a value to be written as JSON. */
export function toJson(type: string, message: unknown): object {
  const json: Fields = {};
  for (const field of fieldsOf(type)) {
    const value = valueIn(field, message as Fields);
    if (value !== undefined) json[field.name] = value;
  }
  return json;
}

function fieldsOf(type: string): readonly EtcdField[] {
  const fields = ETCD_SCHEMA.messages[type];
  if (fields === undefined) throw new TypeError(`etcd's API has no message ${type}`);
  return fields;
}

// ------------------------------------------------------------------------------------------------ requests

function messageOf(type: string, value: JsonValue, path: string): unknown {
  const message: Fields = {};
  for (const field of fieldsOf(type)) {
    if (field.oneof === undefined) message[field.key] = field.repeated ? [] : defaultOf(field);
    else message[field.oneof] = undefined;
  }
  if (value === null) return message;
  if (!(value instanceof Map)) throw wrong(path, 'an object');
  for (const field of fieldsOf(type)) {
    const given = value.get(field.name) ?? value.get(field.key) ?? null;
    if (given !== null) assign(message, field, given, path === '' ? field.name : `${path}.${field.name}`);
  }
  return message;
}

function assign(message: Fields, field: EtcdField, given: JsonValue, path: string): void {
  if (field.repeated) {
    if (!Array.isArray(given)) throw wrong(path, 'a list');
    message[field.key] = given.map((item: JsonValue, i) => scalarOrMessage(field, item, `${path}[${i}]`));
    return;
  }
  const value = scalarOrMessage(field, given, path);
  if (field.oneof === undefined) message[field.key] = value;
  else if (message[field.oneof] === undefined) message[field.oneof] = { $case: field.key, value };
  else throw new ServiceError('INVALID_ARGUMENT', `${path}: another field of ${field.oneof} is set as well; send one`);
}

function scalarOrMessage(field: EtcdField, given: JsonValue, path: string): unknown {
  if (field.kind === 'message') return messageOf(field.of ?? '', given, path);
  if (given === null) return defaultOf(field);
  switch (field.kind) {
    case 'bytes':
      return bytesOf(given, path);
    case 'string':
      if (typeof given === 'string') return given;
      throw wrong(path, 'text');
    case 'bool':
      if (typeof given === 'boolean') return given;
      throw wrong(path, 'true or false');
    case 'enum':
      return enumOf(field.of ?? '', given, path);
    default:
      return numberOf(field, given, path);
  }
}

/** Of the two alphabets. */
const NOT_BASE64 = /[^A-Za-z0-9+/]/;
const NOT_BASE64_OF_URLS = /[^A-Za-z0-9_-]/;

/** JC2. */
function bytesOf(given: JsonValue, path: string): Buffer {
  if (typeof given !== 'string') throw wrong(path, 'base64');
  const text = given.replaceAll(/[\r\n]/g, '');
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const digits = text.slice(0, text.length - padding);
  const isWhole = padding === 0 ? digits.length % 4 !== 1 : text.length % 4 === 0;
  const isBase64 = !NOT_BASE64.test(digits) || !NOT_BASE64_OF_URLS.test(digits);
  if (!isBase64 || !isWhole) throw wrong(path, 'base64, for example "Zm9v" for foo');
  return Buffer.from(text, 'base64');
}

function enumOf(type: string, given: JsonValue, path: string): number {
  const names = ETCD_SCHEMA.enums[type] ?? [];
  if (typeof given === 'string') {
    const known = names.find(([name]) => name === given);
    if (known !== undefined) return known[1];
  }
  if (given instanceof JsonNumber && /^-?\d{1,9}$/.test(given.text)) return Number(given.text);
  throw wrong(path, `one of ${names.map(([name]) => name).join(', ')}`);
}

const BOUNDS = {
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
} as const;

/** JC2. */
function numberOf({ kind, asNumber }: EtcdField, given: JsonValue, path: string): number | bigint {
  const text = given instanceof JsonNumber ? given.text : given;
  const [min, max] = BOUNDS[kind as keyof typeof BOUNDS];
  if (typeof text === 'string' && /^-?\d{1,20}$/.test(text)) {
    const value = BigInt(text);
    if (value >= min && value <= max) return isBig(kind) && asNumber !== true ? value : Number(value);
  }
  throw wrong(path, `a whole number from ${min} to ${max}`);
}

function isBig(kind: EtcdField['kind']): boolean {
  return kind === 'int64' || kind === 'uint64';
}

function defaultOf({ kind, asNumber }: EtcdField): unknown {
  switch (kind) {
    case 'message':
      return undefined;
    case 'bytes':
      return Buffer.alloc(0);
    case 'string':
      return '';
    case 'bool':
      return false;
    default:
      return isBig(kind) && asNumber !== true ? 0n : 0;
  }
}

function wrong(path: string, wanted: string): ServiceError {
  const where = path === '' ? 'the body' : path;
  return new ServiceError('INVALID_ARGUMENT', `${where}: expected ${wanted}`);
}

// ------------------------------------------------------------------------------------------------ responses

/** JC3. Undefined for a field with its default. */
function valueIn(field: EtcdField, message: Fields): unknown {
  if (field.oneof !== undefined) {
    const union = message[field.oneof] as { readonly $case: string; readonly value: unknown } | undefined;
    return union?.$case === field.key ? shown(field, union.value) : undefined;
  }
  const value = message[field.key];
  if (field.repeated) {
    const items = value as readonly unknown[];
    return items.length === 0 ? undefined : items.map((item) => shown(field, item));
  }
  return isDefault(value) ? undefined : shown(field, value);
}

function isDefault(value: unknown): boolean {
  if (value instanceof Uint8Array) return value.length === 0;
  return value === undefined || value === false || value === '' || value === 0 || value === 0n;
}

function shown(field: EtcdField, value: unknown): unknown {
  switch (field.kind) {
    case 'message':
      return toJson(field.of ?? '', value);
    case 'bytes':
      return (value as Buffer).toString('base64');
    case 'enum':
      return (ETCD_SCHEMA.enums[field.of ?? ''] ?? []).find(([, number]) => number === value)?.[0] ?? value;
    case 'int64':
    case 'uint64':
      return String(value);
    default:
      return value;
  }
}
