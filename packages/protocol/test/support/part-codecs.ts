/** Closed codecs of parts, as tests of single messages use them. */

import { Command } from '../../src/internal/command.ts';
import { CommandResult } from '../../src/internal/command-result.ts';
import { NodeDescriptor } from '../../src/internal/descriptor.ts';
import { Compare, KvOp } from '../../src/internal/kv-types.ts';
import { Query, QueryResult } from '../../src/internal/query.ts';
import { Result } from '../../src/internal/range-api.ts';
import { closedCodec } from '../../src/schema/codec.ts';
import type { Kind } from '../../src/schema/shape.ts';

function lists<T>(kind: Kind<T>): { encode(value: T): unknown[]; decode(raw: unknown): T } {
  const { encode, decode } = closedCodec(kind);
  return { encode: (value) => encode(value) as unknown[], decode };
}

export const { encode: encodeCommand, decode: decodeCommand } = lists(Command);
export const { encode: encodeCommandResult, decode: decodeCommandResult } = lists(CommandResult);
export const { encode: encodeKvOp, decode: decodeKvOp } = lists(KvOp);
export const { encode: encodeCompare, decode: decodeCompare } = lists(Compare);
export const { encode: encodeQuery, decode: decodeQuery } = lists(Query);
export const { encode: encodeQueryResult, decode: decodeQueryResult } = lists(QueryResult);
export const { encode: encodeResult, decode: decodeResult } = lists(Result);
export const { encode: encodeNodeDescriptor, decode: decodeNodeDescriptor } = lists(NodeDescriptor);
