/** The header blocks of answers. They are encoded without a dynamic table, so constant ones are encoded once. */

import { encodeFields } from '../hpack/header-encoder.ts';
import type { HeaderField } from '../hpack/header-field.ts';
import { type MetadataFields, metadataFields } from './metadata.ts';
import { percentEncoded } from './status.ts';

const BEGIN: readonly HeaderField[] = [
  { name: ':status', value: '200' },
  { name: 'content-type', value: 'application/grpc' },
];

/** Begins an answer. */
export const HEAD_BLOCK = encodeFields(BEGIN);
/** Ends an answer with OK. */
export const OK_BLOCK = encodeFields([{ name: 'grpc-status', value: '0' }]);

export function headBlock(metadata: MetadataFields): Buffer {
  return encodeFields([...BEGIN, ...metadataFields(metadata)]);
}

export interface Status {
  readonly status: number;
  readonly message: string;
  readonly trailers?: MetadataFields | undefined;
}

/** Trailers; of an answer that has not begun, together with its beginning. */
export function statusBlock({ status, message, trailers }: Status, isHeadSent: boolean): Buffer {
  const fields: HeaderField[] = isHeadSent ? [] : [...BEGIN];
  fields.push({ name: 'grpc-status', value: String(status) });
  if (message !== '') fields.push({ name: 'grpc-message', value: percentEncoded(message) });
  if (trailers !== undefined) fields.push(...metadataFields(trailers));
  return encodeFields(fields);
}

/** The answer to what is no call of gRPC. */
export function httpBlock(status: number): Buffer {
  return encodeFields([{ name: ':status', value: String(status) }]);
}
