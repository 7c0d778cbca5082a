/** Commands that do the host's part: the disk, applying, messages and snapshots. */
import type { ReplicaId } from '../../src/core/types.ts';
import type { Command } from './command.ts';
import { type Args, toNumber } from './datadriven.ts';
import { at, name, showMessage } from './format.ts';
import { nodeOf, nodesOf } from './named-nodes.ts';
import type { MessageFilter, World } from './world.ts';

export const HOST_COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['process-ready', processReady],
  ['persist', persist],
  ['apply', apply],
  ['deliver', deliver],
  ['drop', drop],
  ['network', network],
  ['cut', cut],
  ['heal', heal],
  ['compact', compact],
  ['checkpoint', checkpoint],
  ['evict', evict],
  ['read-back', readBack],
  ['send-snapshot', sendSnapshot],
  ['install', install],
  ['install-failed', installFailed],
  ['report-snapshot', reportSnapshot],
  ['crash', crash],
  ['restart', restart],
]);

/** `process-ready 1`: takes one `Ready`; what it asks for waits for commands. */
function processReady(world: World, args: Args): void {
  for (const node of nodesOf(world, args)) {
    world.tell(`${name(node.id)} ready${node.core.hasReady() ? '' : ': nothing'}`);
    if (node.core.hasReady()) world.takeReady(node);
  }
}

/** `persist 1 count=2`: the oldest writes under way are durable, by default all. */
function persist(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const count = args.number('count') ?? node.unsynced.length;
  for (let i = 0; i < count; i++) world.persist(node);
}

/** `apply 1 count=2`: the next committed entries are applied, by default all. */
function apply(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const count = args.number('count') ?? node.toApply.length;
  for (let i = 0; i < count; i++) world.apply(node);
}

/** `compact 1 to=5`: the state machine's checkpoint is durable, and the log goes up to there. */
function compact(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const to = args.number('to') ?? node.applied.index;
  node.compact(to);
  world.tell(`${name(node.id)} begins after ${at(node.disk.start)}`);
}

/** `evict 1 to=5`: entries up to there leave memory. */
function evict(world: World, args: Args): void {
  nodeOf(world, args).core.evictTo(args.number('to') ?? 0);
}

/** `read-back 1`: the oldest wish for entries that left memory is answered from the disk. */
function readBack(world: World, args: Args): void {
  world.readBack(nodeOf(world, args));
}

/** `checkpoint 1`: a restart goes on from what is applied now. */
function checkpoint(world: World, args: Args): void {
  const node = nodeOf(world, args);
  node.checkpoint();
  world.tell(`${name(node.id)} holds ${at(node.applied)} durably`);
}

/** `crash 1 reached=1`: of the writes under way, so many came through. `keep`: messages to it are late, not lost. */
function crash(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const { length } = node.unsynced;
  world.crash(node, { reached: args.number('reached') ?? 0, keep: args.flag('keep') });
  world.tell(`${name(node.id)} is down; ${length} writes were under way`);
}

function restart(world: World, args: Args): void {
  const node = world.node(toNumber(args.word()));
  node.restart();
  world.forget(node);
  world.tellChanges(node);
}

function filterOf(args: Args): MessageFilter {
  return {
    from: args.numbers('from'),
    to: args.numbers('to'),
    types: args.list('type'),
    count: args.number('count'),
  };
}

/**
 * `deliver from=1 to=(2,3) type=append count=1`; `keep` leaves them under way, to arrive again; `reversed` turns them
 * round.
 */
function deliver(world: World, args: Args): void {
  const keep = args.flag('keep');
  const reversed = args.flag('reversed');
  const messages = world.select(filterOf(args));
  if (!keep) world.remove(messages);
  if (messages.length === 0) world.tell('nothing is under way');
  for (const message of reversed ? messages.toReversed() : messages) world.deliver(message);
}

function drop(world: World, args: Args): void {
  const messages = world.select(filterOf(args));
  world.remove(messages);
  if (messages.length === 0) world.tell('nothing is under way');
  for (const message of messages) world.tell(`dropped ${showMessage(message)}`);
}

function network(world: World, args: Args): void {
  const messages = world.select(filterOf(args));
  if (messages.length === 0) world.tell('nothing is under way');
  for (const message of messages) world.tell(showMessage(message));
}

/** `cut 1>2 3`: one direction, or a node from all others. What is sent there is lost. */
function cut(world: World, args: Args): void {
  for (const word of args.words()) {
    const [from, to] = word.split('>').map(toNumber);
    if (from === undefined) throw new Error('a node is missing');
    for (const other of to === undefined ? world.nodes.keys() : [to]) {
      world.cut(from, other);
      if (to === undefined) world.cut(other, from);
    }
  }
}

function heal(world: World): void {
  world.heal();
}

/** `send-snapshot 1 to=3`: the host of 1 offers what is applied there. */
function sendSnapshot(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const to = args.number('to') ?? 0;
  world.wanted = world.wanted.filter((wanted) => wanted.from !== node.id || wanted.to !== to);
  world.sendSnapshot(node, world.running(to));
}

function install(world: World, args: Args): void {
  world.install(nodeOf(world, args));
}

function installFailed(world: World, args: Args): void {
  const node = nodeOf(world, args);
  node.receiving = undefined;
  node.core.installFailed();
  world.tellChanges(node);
}

/** `report-snapshot 1 of=3 index=5`, or `failed`. */
function reportSnapshot(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const of: ReplicaId = args.number('of') ?? 0;
  const ok = !args.flag('failed');
  world.reportSnapshot(node, of, { ok, index: args.number('index') ?? 0 });
}
