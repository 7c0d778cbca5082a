/**
 * This node's replica of the masters' group: it exists from the start, or begins and ends while the node runs.
 *
 * SE1. A founder begins with the group's first membership; any other node with none, and a snapshot brings it in. The
 *      engine records which case it was: it has the replica's state, or the node has not had a replica yet.
 * SE2. For a replica that joins, the held row of the group is durable with the first state, before its group writes to
 *      the log. An ended replica never begins again here, whatever the options say, because its promises are forgotten.
 * SE3. The end is durable before the log is deleted (as for ranges, replicas/replica-remover.ts RM1).
 */
import type { Engine, Logger } from '@remora/base';
import { type Checkpointer, HeldReplicas, masterStateKey } from '@remora/dataserver';
import type { Master } from '@remora/master';
import type { RpcRegistry } from '@remora/protocol';
import {
  type ConfState,
  confOf,
  type Group,
  type GroupId,
  MASTER_GROUP,
  type NodeRaftHost,
  type RecoveredGroup,
} from '@remora/raft';

export interface MasterReplicaDeps {
  readonly nodeId: number;
  /** The node has the role. */
  readonly mayServe: boolean;
  /** The first members of the group, if this node is one of them. */
  readonly founders: readonly number[] | undefined;
  readonly engine: Engine;
  readonly checkpointer: Checkpointer;
  readonly host: NodeRaftHost;
  readonly recovered: Map<GroupId, RecoveredGroup>;
  readonly registry: RpcRegistry;
  readonly logger: Logger;
  readonly createMaster: (conf: ConfState, onLeft: () => void) => Master;
  /** The node must stop. */
  readonly onFailure: (error: unknown) => void;
}

/** The founders start at about the same time: the first campaigns soon, and not at the same time as the others. */
const FIRST_WAIT_TICKS = 8;
const FIRST_WAIT_TICKS_APART = 4;
const KEY = masterStateKey(MASTER_GROUP);

export class MasterReplica {
  readonly #deps: MasterReplicaDeps;
  readonly #held: HeldReplicas;
  #master: Master | undefined;
  #leaveCheckpoints: () => void = () => {};
  #changing = false;
  #stopped = false;

  constructor(deps: MasterReplicaDeps) {
    this.#deps = deps;
    this.#held = new HeldReplicas(deps.engine);
  }

  get master(): Master | undefined {
    return this.#master;
  }

  /** Starts what the node has. (SE1, SE2) */
  start(): void {
    const { mayServe, founders, engine } = this.#deps;
    if (this.#held.of(MASTER_GROUP)?.ended === true) return this.#clear();
    if (!mayServe) return;
    if (engine.get(KEY) !== undefined || founders !== undefined) this.#run(confOf(founders ?? []));
  }

  /** The node is a member of the group now; does nothing if its replica runs, or has ended. (SE2) */
  become(): void {
    const { mayServe, nodeId, checkpointer, logger, onFailure } = this.#deps;
    if (this.#master !== undefined || this.#changing || !mayServe) return;
    if (this.#held.of(MASTER_GROUP)?.ended === true) return;
    this.#changing = true;
    this.#held.begins(MASTER_GROUP, nodeId);
    const master = this.#create(confOf([]));
    master.stage();
    checkpointer
      .run()
      .then(() => {
        if (this.#stopped) return; // the next start continues
        this.#changing = false;
        this.#attach(master);
        logger.info({}, 'this node became a master');
      })
      .catch(onFailure);
  }

  /** The node has left the group. (SE3) */
  cease(): void {
    const { host, nodeId, checkpointer, logger, onFailure } = this.#deps;
    const master = this.#master;
    if (master === undefined) return;
    this.#master = undefined;
    this.#changing = true; // until the end is recorded, only this field records it (SE2)
    master.stop();
    const recorded = (): Promise<void> => {
      master.stage();
      this.#leaveCheckpoints();
      this.#held.ends(MASTER_GROUP, nodeId);
      return checkpointer.run();
    };
    host
      .removeGroup(MASTER_GROUP, recorded)
      .then(() => {
        this.#changing = false;
        this.#deps.engine.delete(KEY);
        logger.info({}, 'this node is no longer a master');
      })
      .catch(onFailure);
  }

  stop(): void {
    this.#stopped = true;
    this.#master?.stop();
  }

  /** Deletes what a crash has left of an ended replica. */
  #clear(): void {
    const { engine, host, recovered, onFailure } = this.#deps;
    recovered.delete(MASTER_GROUP);
    if (engine.get(KEY) === undefined) return;
    host
      .removeGroup(MASTER_GROUP)
      .then(() => engine.delete(KEY))
      .catch(onFailure);
  }

  #create(conf: ConfState): Master {
    // Called within `apply`, which must end first.
    return this.#deps.createMaster(conf, () => queueMicrotask(() => this.cease()));
  }

  #run(conf: ConfState): void {
    this.#attach(this.#create(conf));
  }

  #attach(master: Master): void {
    const { host, nodeId, recovered, registry, checkpointer } = this.#deps;
    const found = recovered.get(MASTER_GROUP);
    recovered.delete(MASTER_GROUP);
    const { applied, conf } = master.state;
    const group: Group = host.createGroup({
      groupId: MASTER_GROUP,
      replicaId: nodeId,
      applied,
      conf,
      ...(found === undefined ? {} : { recovered: found }),
      ...(conf.voters.length === 0 ? {} : { firstWaitTicks: firstWaitTicks(nodeId) }),
      stateMachine: master,
      locate: (replicaId) => replicaId,
    });
    master.attach(group);
    this.#leaveCheckpoints = checkpointer.addGroup(group, {
      stage: () => master.stage(),
      applied: () => master.state.applied,
    });
    master.register(registry);
    this.#master = master;
  }
}

function firstWaitTicks(nodeId: number): number {
  return FIRST_WAIT_TICKS + FIRST_WAIT_TICKS_APART * (nodeId - 1);
}
