/** Commands that begin a world, or give a node something to do. */
import { utf8 } from '@remora/base';
import type { RaftConfig } from '../../src/core/config.ts';
import { type ConfStep, confChange } from '../../src/core/membership/conf-change.ts';
import { confOf } from '../../src/core/membership/membership.ts';
import type { Entry, LogPosition } from '../../src/core/types.ts';
import type { Command } from './command.ts';
import { type Args, toNumber } from './datadriven.ts';
import { at, name } from './format.ts';
import { nodeOf, nodesOf, summary } from './named-nodes.ts';
import { ScenarioNode } from './node.ts';
import type { World } from './world.ts';

export const INPUT_COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
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
  ['report-unreachable', reportUnreachable],
]);

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

/**
 * `elect 1 among=(1,2)`: it campaigns, and all that follows happens, by default among all; only the outcome is told.
 */
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
