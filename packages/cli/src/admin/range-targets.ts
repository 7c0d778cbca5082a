import { type Bytes, compareBytes, equalBytes } from '@remora/base';
import { routingKeyText } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type { AdminClient } from 'remora/admin';
import { CommandError } from '../exit-codes.ts';

type Ranges = Pick<AdminClient, 'range' | 'ranges'>;

/** The range that has a routing key. @throws CommandError if none has. */
export async function rangeWith(client: Pick<AdminClient, 'ranges'>, key: Bytes): Promise<admin.Range> {
  const { items } = await client.ranges({ from: key, pageSize: 1 }).page();
  const [range] = items;
  if (range !== undefined && compareBytes(range.start, key) <= 0) return range;
  throw new CommandError('failed', `no range contains ${routingKeyText(key)}; run: remora admin check`);
}

/**
 * The range to split: the named one, or the one that has the key.
 * @throws CommandError if it cannot be split there, with what would be possible.
 */
export async function splitTarget(
  client: Ranges,
  rangeId: number | undefined,
  key: Bytes | undefined,
): Promise<admin.Range> {
  if (key !== undefined) return splitAt(client, rangeId, key);
  if (rangeId !== undefined) return client.range(rangeId);
  throw new CommandError('usage', 'no range given; give a range id, a --key, or both');
}

async function splitAt(client: Ranges, rangeId: number | undefined, key: Bytes): Promise<admin.Range> {
  const owner = await rangeWith(client, key);
  if (rangeId !== undefined && owner.id !== rangeId) {
    const { start, end } = await client.range(rangeId);
    const span = `from ${routingKeyText(start)} to ${routingKeyText(end)}`;
    const message = `${routingKeyText(key)} is not in range ${rangeId} (${span}); range ${owner.id} contains it`;
    throw new CommandError('failed', message);
  }
  if (equalBytes(owner.start, key)) {
    const message = `range ${owner.id} already starts at ${routingKeyText(key)}; choose a later key`;
    throw new CommandError('failed', message);
  }
  return owner;
}

/**
 * Two ranges in the order of their keys: a merge keeps the first one.
 * @throws CommandError if they are not adjacent.
 */
export async function neighbours(
  client: Pick<AdminClient, 'range'>,
  one: number,
  other: number,
): Promise<{ readonly target: admin.Range; readonly source: admin.Range }> {
  const [a, b] = await Promise.all([client.range(one), client.range(other)]);
  if (isNext(a, b)) return { target: a, source: b };
  if (isNext(b, a)) return { target: b, source: a };
  const spans = [a, b].map(
    ({ id, start, end }) => `range ${id} spans ${routingKeyText(start)} to ${routingKeyText(end)}`,
  );
  throw new CommandError('failed', `only adjacent ranges can be merged; ${spans.join(', and ')}`);
}

function isNext({ end }: admin.Range, { start }: admin.Range): boolean {
  return end.length > 0 && equalBytes(end, start);
}
