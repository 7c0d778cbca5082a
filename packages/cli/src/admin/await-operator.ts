import { ServiceError } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import type { AdminClient } from 'remora/admin';
import { CommandError } from '../exit-codes.ts';
import { type Follower, follow, type Progress } from './follow.ts';
import { progressText } from './operator-text.ts';

/**
 * Follows an operator until it has ended; undefined if the person stops watching, or if a new leader of the masters
 * does not know the operator and plans again.
 * @throws CommandError if it did not do what it should, or if that is unknown.
 */
export async function awaitOperator(
  client: Pick<AdminClient, 'operators'>,
  begun: admin.Operator,
  follower: Follower,
): Promise<admin.Operator | undefined> {
  const { id, rangeId } = begun;
  const ended = await follow(() => lookAt(client, begun), follower).catch((cause: unknown) => {
    if (!(cause instanceof ServiceError)) throw cause;
    const message = `operator ${id} was started, but its outcome is unknown: ${cause.message}.`;
    throw new CommandError('unknown', `${message} To see the range: remora admin ranges show ${rangeId}`, { cause });
  });
  if (ended === undefined) {
    follower.say(`operator ${id} continues; to follow it: remora admin operators ls`);
    return undefined;
  }
  if (ended === 'unknown') {
    const message = `operator ${id} is no longer known: the masters have a new leader, which makes new plans.`;
    throw new CommandError('unknown', `${message} To see the range: remora admin ranges show ${rangeId}`);
  }
  if (ended.status === 'success') return ended;
  throw new CommandError('failed', `operator ${id} ended as ${ended.status}: ${ended.outcome}`);
}

async function lookAt(
  client: Pick<AdminClient, 'operators'>,
  { id, rangeId }: admin.Operator,
): Promise<Progress<admin.Operator | 'unknown'>> {
  const find = async (ended: boolean) =>
    (await client.operators({ ended, rangeId, limit: 100 })).find((operator) => operator.id === id);
  const active = await find(false);
  return active === undefined ? { over: (await find(true)) ?? 'unknown' } : { line: progressText(active) };
}
