import type { admin } from '@remora/protocol/remora';
import type { AdminClient } from 'remora/admin';
import { CommandError } from '../exit-codes.ts';
import { counted } from '../format/sizes.ts';
import { type Follower, follow, type Progress } from './follow.ts';

/** After this many polls without progress, the command prints why nothing moves. */
const STILL_LOOKS = 20;

export function leadsNothing({ leaders }: admin.Node): boolean {
  return leaders === 0;
}

export function isEmpty({ replicas, isMaster }: admin.Node): boolean {
  return replicas === 0 && !isMaster;
}

/**
 * Follows a node until it has given up what it must; undefined if the person stops watching. Without progress for a
 * while, it prints the masters' reasons.
 * @throws CommandError if the node's duty is changed meanwhile: it will not reach that end.
 */
export async function awaitNode(
  client: Pick<AdminClient, 'nodes' | 'why'>,
  wanted: { readonly node: admin.Node; readonly until: (node: admin.Node) => boolean },
  follower: Follower,
): Promise<admin.Node | undefined> {
  const { id, name } = wanted.node;
  let duty: string | undefined;
  let before = '';
  let still = 0;
  const look = async (): Promise<Progress<admin.Node>> => {
    const node = (await client.nodes()).nodes.find((each) => each.id === id);
    if (node === undefined) throw new CommandError('failed', `the cluster no longer knows node ${name}`);
    duty ??= node.duty;
    if (node.duty !== duty)
      throw new CommandError('failed', `${name} is ${node.duty} now: someone changed it while this command waited`);
    if (wanted.until(node)) return { over: node };
    const master = node.isMaster ? ', and is one of the masters' : '';
    const line = `${name} has ${counted(node.replicas, 'replica')}, leads ${counted(node.leaders, 'range')}${master}`;
    still = line === before ? still + 1 : 0;
    before = line;
    if (still < STILL_LOOKS) return { line };
    const why = await client.why({ nodeId: id });
    return { line: `${line}; nothing is moving:\n${why.map((each) => `  ${each}`).join('\n')}` };
  };
  const last = await follow(look, follower);
  if (last === undefined)
    follower.say(`the cluster continues to empty ${name}; to follow it: remora admin nodes show ${name} --watch`);
  return last;
}
