/** Closed codecs of parts, as tests of single messages use them. */
import { closedCodec } from '../../schema/codec.ts';
import type { Kind } from '../../schema/shape.ts';
import { Command } from '../command.ts';
import { CommandResult } from '../command-result.ts';
import { NodeDescriptor } from '../descriptor.ts';
import { Compare, KvOp } from '../kv-types.ts';
import { Query, QueryResult } from '../query.ts';
import { Result } from '../range-api.ts';

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
