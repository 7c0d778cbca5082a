/**
 * The replicas of a scenario and the messages between them. Nothing happens by itself: each step of each replica is a
 * command. What a command did is told line by line, beginning with the state that changed.
 */
import { assert } from '@remora/base';
import { changeConf } from '../../src/core/membership/conf-change.ts';
import { decodeConfChange } from '../../src/core/membership/conf-change-codec.ts';
import type { TraceEvent } from '../../src/core/trace.ts';
import type { Entry, Message, Moment, ReplicaId } from '../../src/core/types.ts';
import { at, name, showConf, showEntry, showMessage, showPersist } from './format.ts';
import type { ScenarioNode } from './node.ts';

export interface MessageFilter {
  readonly from?: readonly ReplicaId[] | undefined;
  readonly to?: readonly ReplicaId[] | undefined;
  readonly types?: readonly string[] | undefined;
  readonly count?: number | undefined;
}

/** What was last told of a replica. */
interface Told {
  readonly role: string;
  readonly commit: string;
  readonly conf: string;
  readonly transfer: string;
}

const ROUNDS_MAX = 200;

export class World {
  readonly nodes = new Map<ReplicaId, ScenarioNode>();
  network: Message[] = [];
  /** Snapshots that leaders want to be sent. */
  wanted: { readonly from: ReplicaId; readonly to: ReplicaId }[] = [];
  readonly #cut = new Set<string>();
  readonly #told = new Map<ReplicaId, Told>();
  #lines: string[] = [];
  /** What the cores told of themselves, all in one order. */
  readonly events: TraceEvent[] = [];
  readonly trace = (event: TraceEvent): void => {
    this.events.push(event);
  };

  /** What happened since the last call. */
  takeLines(): string {
    const lines = this.#lines;
    this.#lines = [];
    return lines.join('\n');
  }

  tell(line: string): void {
    this.#lines.push(line);
  }

  add(node: ScenarioNode): void {
    assert(!this.nodes.has(node.id), `n${node.id} is there already`);
    this.nodes.set(node.id, node);
    this.tellChanges(node);
  }

  node(id: ReplicaId): ScenarioNode {
    const node = this.nodes.get(id);
    assert(node !== undefined, `there is no n${id}`);
    return node;
  }

  /** A node that runs. */
  running(id: ReplicaId): ScenarioNode {
    const node = this.node(id);
    assert(node.up, `n${id} is down`);
    return node;
  }

  /** Tells what of the state differs from what was told before. */
  tellChanges(node: ScenarioNode): void {
    const before = this.#told.get(node.id);
    const now = stateOf(node);
    this.#told.set(node.id, now);
    if (before === undefined) {
      this.tell(`${name(node.id)} ${now.role} ${now.commit} ${now.conf}`);
      return;
    }
    for (const key of ['role', 'commit', 'conf', 'transfer'] as const) {
      if (now[key] !== before[key]) this.tell(`${name(node.id)} ${now[key]}`);
    }
  }

  /** A restarted replica is told anew. */
  forget(node: ScenarioNode): void {
    this.#told.delete(node.id);
  }

  // ------------------------------------------------------------------------------------------ one replica

  /** Takes one `Ready`. */
  takeReady(node: ScenarioNode): void {
    const ready = node.core.ready();
    for (const message of ready.messages) this.#send(message);
    if (ready.persist !== undefined) {
      this.tell(`  ${showPersist(ready.persist)}`);
      node.unsynced.push(ready.persist);
    }
    for (const entry of ready.committed) this.tell(`  committed ${showEntry(entry)}`);
    node.toApply.push(...ready.committed);
    for (const { context, index } of ready.readStates) this.tell(`  read ${context} confirmed at ${index}`);
    for (const context of ready.readsDropped) this.tell(`  read ${context} dropped`);
    for (const to of ready.snapshotsWanted) {
      this.tell(`  wants a snapshot for ${name(to)}`);
      this.wanted.push({ from: node.id, to });
    }
    for (const { reader, from, to } of ready.entriesWanted) this.tell(`  wants ${from} to ${to} for ${name(reader)}`);
    node.toRead.push(...ready.entriesWanted);
    this.tellChanges(node);
  }

  readBack(node: ScenarioNode): void {
    const { reader, from, to } = node.readBack();
    this.tell(`${name(node.id)} read ${from} to ${to} for ${name(reader)}`);
  }

  persist(node: ScenarioNode): void {
    const { mark } = node.persist();
    this.tell(`${name(node.id)} persisted #${mark.sequence}`);
    this.tellChanges(node);
  }

  apply(node: ScenarioNode): void {
    const entry = node.toApply.shift();
    assert(entry !== undefined, `n${node.id} has nothing to apply`);
    this.tell(`${name(node.id)} applies ${showEntry(entry)}`);
    if (entry.type === 'conf') this.#applyConf(node, entry);
    node.core.appliedTo(entry.index);
    node.applied = { index: entry.index, term: entry.term, conf: node.core.conf };
    this.tellChanges(node);
  }

  /** The host's part: a change that is not possible on the configuration as it is changes nothing. */
  #applyConf(node: ScenarioNode, entry: Entry): void {
    const next = changeConf(node.core.conf, decodeConfChange(entry.data));
    if ('invalid' in next) this.tell(`  changes nothing: ${next.invalid}`);
    else node.core.applyConf(next);
  }

  // ------------------------------------------------------------------------------------------ time

  /** The clocks of all nodes, in milliseconds: they run only by command. */
  now: Moment = { monotonicMs: 0, wallMs: 0 };

  // ------------------------------------------------------------------------------------------ messages

  /** What is sent there from now on is lost, and what is under way. */
  cut(from: ReplicaId, to: ReplicaId): void {
    this.#cut.add(`${from}>${to}`);
    this.remove(this.select({ from: [from], to: [to] }));
  }

  /** Takes a node down. What is under way to it is lost, or late (`keep`): it may arrive after the restart. */
  crash(node: ScenarioNode, how: { readonly reached: number; readonly keep: boolean }): void {
    node.crash(how.reached);
    if (!how.keep) this.remove(this.select({ to: [node.id] }));
  }

  #send(message: Message): void {
    const reaches = this.nodes.get(message.to)?.up === true && !this.#cut.has(`${message.from}>${message.to}`);
    this.tell(`  ${reaches ? 'send' : 'lose'} ${showMessage(message)}`);
    if (reaches) this.network.push(message);
  }

  heal(): void {
    this.#cut.clear();
  }

  /** The messages under way that the filter chooses, oldest first; they stay under way. */
  select(filter: MessageFilter): Message[] {
    const chosen = this.network.filter(
      (m) =>
        (filter.from?.includes(m.from) ?? true) &&
        (filter.to?.includes(m.to) ?? true) &&
        (filter.types?.includes(m.type) ?? true),
    );
    return chosen.slice(0, filter.count ?? chosen.length);
  }

  remove(messages: readonly Message[]): void {
    const gone = new Set(messages);
    this.network = this.network.filter((m) => !gone.has(m));
  }

  deliver(message: Message): void {
    const target = this.running(message.to);
    this.tell(showMessage(message));
    target.core.step(message);
    this.tellChanges(target);
  }

  // ------------------------------------------------------------------------------------------ snapshots

  /** The host of `from` offers a picture of its state machine to `to`. */
  sendSnapshot(from: ScenarioNode, to: ScenarioNode): void {
    const meta = from.applied;
    const wanted = to.core.acceptsSnapshot(from.id, from.core.term, meta);
    if (wanted) to.receiving = { from: from.id, meta };
    const verb = wanted ? 'receives' : 'declines';
    this.tell(`${name(to.id)} ${verb} a snapshot of ${name(from.id)} at ${at(meta)} ${showConf(meta.conf)}`);
    this.tellChanges(to);
  }

  install(node: ScenarioNode): void {
    const { receiving } = node;
    assert(receiving !== undefined, `n${node.id} receives no snapshot`);
    node.receiving = undefined;
    node.toApply = [];
    node.applied = receiving.meta;
    node.checkpoint();
    node.core.installed(receiving.meta);
    this.tell(`${name(node.id)} installed ${at(receiving.meta)}`);
    this.tellChanges(node);
  }

  reportSnapshot(node: ScenarioNode, to: ReplicaId, result: { readonly ok: boolean; readonly index: number }): void {
    node.core.reportSnapshot(to, result.ok, result.index);
    const outcome = result.ok ? `installed up to ${result.index}` : 'failed';
    this.tell(`${name(node.id)} hears that the snapshot for ${name(to)} ${outcome}`);
    this.tellChanges(node);
  }

  #transferSnapshot(wanted: { readonly from: ReplicaId; readonly to: ReplicaId }): void {
    const from = this.node(wanted.from);
    const to = this.node(wanted.to);
    if (!from.up || !to.up || from.core.role !== 'leader') return;
    this.sendSnapshot(from, to);
    const { receiving } = to;
    if (receiving !== undefined) this.install(to);
    this.reportSnapshot(from, to.id, { ok: receiving !== undefined, index: receiving?.meta.index ?? 0 });
  }

  // ------------------------------------------------------------------------------------------ until nothing is left

  /** Lets the given replicas do all they can, and the messages among them arrive, until nothing is under way. */
  stabilize(ids: readonly ReplicaId[]): void {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      let busy = false;
      for (const id of ids) if (this.#work(this.node(id))) busy = true;
      for (const wanted of this.wanted.filter(({ from, to }) => ids.includes(from) && ids.includes(to))) {
        this.wanted = this.wanted.filter((other) => other !== wanted);
        this.#transferSnapshot(wanted);
        busy = true;
      }
      const messages = this.select({ from: ids, to: ids });
      this.remove(messages);
      for (const message of messages) this.deliver(message);
      if (!busy && messages.length === 0) return;
    }
    assert(false, 'messages go round for ever');
  }

  #work(node: ScenarioNode): boolean {
    if (!node.up) return false;
    let busy = false;
    for (;;) {
      if (node.core.hasReady()) {
        this.tell(`${name(node.id)} ready`);
        this.takeReady(node);
      } else if (node.unsynced.length > 0) this.persist(node);
      else if (node.toRead.length > 0) this.readBack(node);
      else if (node.toApply.length > 0) this.apply(node);
      else return busy;
      busy = true;
    }
  }
}

function stateOf(node: ScenarioNode): Told {
  const { role, term, vote, leader, commit, conf, transferee } = node.core.status();
  return {
    role: `${role} term=${term} vote=${name(vote)} leader=${name(leader)}`,
    commit: `commit=${commit}`,
    conf: showConf(conf),
    transfer: transferee === 0 ? 'transfer is over' : `transfers to ${name(transferee)}`,
  };
}
