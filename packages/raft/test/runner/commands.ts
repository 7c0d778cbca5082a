/** The commands of scenarios. Each reads its arguments, does one thing to the world, and tells what happened. */
import { utf8 } from '@remora/base';
import { type ConfStep, confChange } from '../../src/core/conf-change.ts';
import type { RaftConfig } from '../../src/core/config.ts';
import { confOf } from '../../src/core/membership.ts';
import type { Entry, LogPosition, ReplicaId } from '../../src/core/types.ts';
import { type Args, toNumber } from './datadriven.ts';
import { at, name, showConf, showEntry, showMessage, showProgress } from './format.ts';
import { ScenarioNode } from './node.ts';
import type { MessageFilter, World } from './world.ts';

type Command = (world: World, args: Args) => void;

/** Runs one command in the world and returns what happened. */
export function runCommand(world: World, args: Args): string {
  const command = COMMANDS.get(args.command);
  if (command === undefined) throw new Error(`there is no command '${args.command}'`);
  command(world, args);
  return world.takeLines();
}

const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['add-nodes', addNodes],
  ['tick', tick],
  ['campaign', campaign],
  ['elect', elect],
  ['propose', propose],
  ['propose-conf', proposeConf],
  ['read', read],
  ['advance', advance],
  ['lease', lease],
  ['void-lease', voidLease],
  ['transfer', transfer],
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
  ['report-unreachable', reportUnreachable],
  ['crash', crash],
  ['restart', restart],
  ['stabilize', stabilize],
  ['status', status],
  ['raft-log', raftLog],
]);

// -------------------------------------------------------------------------------------------- start

/** `add-nodes 1 2 3 voters=(1,2,3) …`: replicas with the same start; options below. */
function addNodes(world: World, args: Args): void {
  const ids = args.words().map(toNumber);
  const voters = args.numbers('voters') ?? ids;
  const conf = confOf(voters, args.numbers('learners') ?? []);
  const start = position(args.text('start')) ?? { index: 0, term: 0 };
  const entries = entriesOf(args, start);
  const lastTerm = entries.at(-1)?.term ?? start.term;
  const hardState = {
    term: args.number('term') ?? lastTerm,
    vote: args.number('vote') ?? 0,
    commit: args.number('commit') ?? start.index,
  };
  const offset = args.number('wait-offset');
  const config = { ...configOf(args), trace: world.trace };
  for (const id of ids) {
    const waitOffsetTicks = offset ?? id - 1;
    world.add(new ScenarioNode({ id, conf, hardState, start, entries, config, waitOffsetTicks }));
  }
}

/** `log=(1,1,2)` gives the terms of the entries after the start. */
function entriesOf(args: Args, start: LogPosition): Entry[] {
  return (args.numbers('log') ?? []).map((term, i) => {
    const index = start.index + 1 + i;
    return { index, term, type: 'normal', data: utf8(`${index}@${term}`) };
  });
}

const NUMBER_OPTIONS = [
  ['election-ticks', 'electionTicks'],
  ['heartbeat-ticks', 'heartbeatTicks'],
  ['max-message-bytes', 'maxEntryBytesPerMessage'],
  ['max-inflight', 'maxInflightMessages'],
  ['max-inflight-bytes', 'maxInflightBytes'],
  ['max-uncommitted-bytes', 'maxUncommittedBytes'],
  ['max-applying-bytes', 'maxApplyingBytes'],
  ['caught-up-entries', 'caughtUpEntries'],
  ['lease-ms', 'leaseMs'],
] as const satisfies readonly (readonly [string, keyof RaftConfig])[];

function configOf(args: Args): Partial<RaftConfig> {
  const config: Record<string, number | boolean> = {};
  for (const [option, field] of NUMBER_OPTIONS) {
    const value = args.number(option);
    if (value !== undefined) config[field] = value;
  }
  config.preVote = args.boolean('pre-vote') ?? true;
  config.checkQuorum = args.boolean('check-quorum') ?? true;
  return config;
}

function position(text: string | undefined): LogPosition | undefined {
  if (text === undefined) return undefined;
  const [index = '', term = ''] = text.split('@');
  return { index: toNumber(index), term: toNumber(term) };
}

// -------------------------------------------------------------------------------------------- input

function nodeOf(world: World, args: Args): ScenarioNode {
  return world.running(toNumber(args.word()));
}

/** The nodes named, or all that run. */
function nodesOf(world: World, args: Args): ScenarioNode[] {
  const words = args.words();
  if (words.length > 0) return words.map((word) => world.running(toNumber(word)));
  return [...world.nodes.values()].filter((node) => node.up);
}

/** `tick 1 2 times=3`: each of them by so many ticks, one after the other. */
function tick(world: World, args: Args): void {
  const times = args.number('times') ?? 1;
  for (const node of nodesOf(world, args)) {
    for (let i = 0; i < times; i++) {
      node.core.tick(world.now);
      world.tellChanges(node);
    }
  }
}

/** `elect 1 among=(1,2)`: it campaigns, and all that follows happens, by default among all; only the outcome is told. */
function elect(world: World, args: Args): void {
  campaignNow(world, nodeOf(world, args));
  const nodes = args.numbers('among')?.map((id) => world.running(id)) ?? nodesOf(world, args);
  world.stabilize(nodes.map((node) => node.id));
  world.takeLines();
  for (const node of nodes) summary(world, node);
}

/** `campaign 1`: ticks until the wait for a leader is over and it campaigns. */
function campaign(world: World, args: Args): void {
  campaignNow(world, nodeOf(world, args));
}

function campaignNow(world: World, node: ScenarioNode): void {
  if (node.core.hasReady()) throw new Error('process-ready first: what a campaign does would not show');
  for (let ticks = 1; ticks <= 2 * node.electionTicks; ticks++) {
    node.core.tick(world.now);
    if (!node.core.hasReady()) continue;
    world.tell(`${name(node.id)} waited ${ticks} ticks`);
    world.tellChanges(node);
    return;
  }
  world.tell(`${name(node.id)} does not campaign`);
}

/** `propose 1 a b c`, or `propose 1 bytes=100 times=3`. */
function propose(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const bytes = args.number('bytes');
  const times = args.number('times') ?? 1;
  const texts = bytes === undefined ? args.words() : Array.from({ length: times }, () => 'x'.repeat(bytes));
  for (const text of texts) {
    const result = node.core.propose(utf8(text));
    world.tell(`${name(node.id)} ${'refused' in result ? `refuses: ${result.refused}` : `appends ${at(result)}`}`);
  }
}

/** `propose-conf 1 v4 l5 r2 transition=joint`: voter 4, learner 5, without 2. Without steps: leave. */
function proposeConf(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const transition = args.text('transition') ?? 'auto';
  if (transition !== 'auto' && transition !== 'joint' && transition !== 'jointAuto') {
    throw new Error(`there is no transition '${transition}'`);
  }
  const result = node.core.proposeConf(confChange(args.words().map(stepOf), transition));
  if (!('refused' in result)) world.tell(`${name(node.id)} appends ${at(result)}`);
  else world.tell(`${name(node.id)} refuses: ${result.refused}${'problem' in result ? ` (${result.problem})` : ''}`);
}

function stepOf(word: string): ConfStep {
  const type = STEP_TYPES.get(word.slice(0, 1));
  if (type === undefined) throw new Error(`'${word}' is no step`);
  return { type, replica: toNumber(word.slice(1)) };
}

const STEP_TYPES: ReadonlyMap<string, ConfStep['type']> = new Map([
  ['v', 'addVoter'],
  ['l', 'addLearner'],
  ['r', 'remove'],
]);

/** `read 1 context=7`: a ReadIndex round. */
function read(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const refused = node.core.readIndex(args.number('context') ?? 1);
  if (refused !== undefined) world.tell(`${name(node.id)} refuses: ${refused}`);
}

/** `advance ms=100`: the clocks of all nodes go on; with `wall=` the wall clocks by another amount. */
function advance(world: World, args: Args): void {
  const ms = args.number('ms') ?? 0;
  const wall = args.number('wall') ?? ms;
  world.now = { monotonicMs: world.now.monotonicMs + ms, wallMs: world.now.wallMs + wall };
}

/** `lease 1`: whether it has a lease now. */
function lease(world: World, args: Args): void {
  for (const node of nodesOf(world, args)) {
    world.tell(`${name(node.id)} has ${node.core.hasLease(world.now) ? 'a' : 'no'} lease`);
  }
}

/** `void-lease 1`: its host found that it stood still until now. */
function voidLease(world: World, args: Args): void {
  nodeOf(world, args).core.voidLease(world.now.monotonicMs);
}

function transfer(world: World, args: Args): void {
  const node = nodeOf(world, args);
  const result = node.core.transferLeader(toNumber(args.word()));
  if (result !== undefined) world.tell(`${name(node.id)} refuses: ${result.refused}`);
  world.tellChanges(node);
}

/** `report-unreachable 1 of=2`. */
function reportUnreachable(world: World, args: Args): void {
  const node = nodeOf(world, args);
  node.core.reportUnreachable(args.number('of') ?? 0);
  world.tellChanges(node);
}

// -------------------------------------------------------------------------------------------- the host's part

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

// -------------------------------------------------------------------------------------------- messages

function filterOf(args: Args): MessageFilter {
  return {
    from: args.numbers('from'),
    to: args.numbers('to'),
    types: args.list('type'),
    count: args.number('count'),
  };
}

/** `deliver from=1 to=(2,3) type=append count=1`; `keep` leaves them under way, to arrive again; `reversed` turns them round. */
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

// -------------------------------------------------------------------------------------------- snapshots

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

// -------------------------------------------------------------------------------------------- the whole, and views

/** `stabilize 1 2`: everything that can happen among them happens; `silently` tells the outcome only. */
function stabilize(world: World, args: Args): void {
  const silently = args.flag('silently');
  const nodes = nodesOf(world, args);
  world.stabilize(nodes.map((node) => node.id));
  if (!silently) return;
  world.takeLines();
  for (const node of nodes) summary(world, node);
}

function summary(world: World, node: ScenarioNode): void {
  const { role, term, leader, commit, applied, lastIndex } = node.core.status();
  world.tell(
    `${name(node.id)} ${role} term=${term} leader=${name(leader)} last=${lastIndex} commit=${commit} applied=${applied}`,
  );
}

function status(world: World, args: Args): void {
  for (const node of nodesOf(world, args)) {
    summary(world, node);
    for (const progress of node.core.status().progress) world.tell(`  ${showProgress(progress)}`);
  }
}

/** What is durable, and what is not yet. */
function raftLog(world: World, args: Args): void {
  for (const node of nodesOf(world, args)) {
    const { hardState, start, entries, checkpoint: held } = node.disk;
    const { term, vote, commit } = hardState;
    world.tell(`${name(node.id)} durable: term=${term} vote=${name(vote)} commit=${commit}, checkpoint ${at(held)}`);
    world.tell(`  after ${at(start)}: ${entries.map(showEntry).join(', ') || 'no entries'}`);
    world.tell(`  ${showConf(held.conf)}`);
    if (node.unsynced.length > 0) world.tell(`  counts as durable up to ${node.core.status().stableIndex}`);
    for (const write of node.unsynced) {
      world.tell(`  under way #${write.mark.sequence}: ${write.entries.map(showEntry).join(', ') || 'no entries'}`);
    }
  }
}
