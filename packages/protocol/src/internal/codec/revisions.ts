import {
  DRAW_COUNT_MAX,
  DRAWS_MAX,
  type DrawRevisionsReply,
  type DrawRevisionsRequest,
  type RangeBlock,
  REVISION_FLOOR_MAX,
  type RevisionBlock,
  type RevisionDraw,
} from '../revision-api.ts';
import { asCount, asFields, asList, invalid } from './check.ts';

/** From 1 to `DRAW_COUNT_MAX`. */
function asDrawCount(raw: unknown): number {
  const count = asCount(raw, 'revision count');
  if (count === 0 || count > DRAW_COUNT_MAX) throw invalid('revision count');
  return count;
}

/** A block whose revisions are all safe integers. */
export function asBlock(first: unknown, count: unknown): RevisionBlock {
  const block = { first: asCount(first, 'first revision'), count: asDrawCount(count) };
  if (block.first === 0 || !Number.isSafeInteger(block.first + block.count)) throw invalid('first revision');
  return block;
}

function decodeDraw(raw: unknown): RevisionDraw {
  const f = asFields(raw, 2, 'revision draw');
  return { rangeId: asCount(f[0], 'rangeId'), count: asDrawCount(f[1]) };
}

export function encodeDrawRequest({ floor, draws }: DrawRevisionsRequest): unknown[] {
  return [floor, draws.map(({ rangeId, count }) => [rangeId, count])];
}

export function decodeDrawRequest(raw: unknown): DrawRevisionsRequest {
  const f = asFields(raw, 2, 'revision draws');
  const request = { floor: asCount(f[0], 'floor'), draws: asList(f[1], 'revision draws', decodeDraw) };
  if (request.floor > REVISION_FLOOR_MAX) throw invalid('floor');
  if (request.draws.length > DRAWS_MAX) throw invalid('revision draws');
  return request;
}

function decodeRangeBlock(raw: unknown): RangeBlock {
  const f = asFields(raw, 3, 'revision block');
  return { rangeId: asCount(f[0], 'rangeId'), ...asBlock(f[1], f[2]) };
}

export function encodeDrawReply({ newest, blocks }: DrawRevisionsReply): unknown[] {
  return [newest, blocks.map(({ rangeId, first, count }) => [rangeId, first, count])];
}

export function decodeDrawReply(raw: unknown): DrawRevisionsReply {
  const f = asFields(raw, 2, 'revision draw reply');
  return { newest: asCount(f[0], 'newest'), blocks: asList(f[1], 'revision blocks', decodeRangeBlock) };
}
