/**
 * The health of a node and its cluster, in one list that all views show (`protocol/src/internal/health/conditions.ts`).
 *
 * NH1. The node itself reports what it knows better than the masters: whether it has heard them, is stopping, has room
 *      on its disk, and whether the masters have a leader. All other conditions come from the masters' last answer.
 * NH2. A node is unready only if another would serve better (HC3): `unlessAlone` conditions count only while another
 *      node with the role `gateway` is up and has no condition that makes it unready. While no leader of the masters
 *      answers, the information about the others is old: they may have the same condition by now, so none of them
 *      counts. None counts either if more nodes are unready than the masters could list: then it is unknown which of
 *      the others serve.
 */
import { type Clock, type FailedLookup, formatDurationMs } from '@remora/base';
import { isBelowReserve } from '@remora/dataserver';
import type { ClockDifference, MastersSilence } from '@remora/master';
import {
  type CheckReport,
  type ConditionName,
  type HealthCondition,
  healthCondition,
  makesUnready,
  type NodeSpace,
  withoutKeys,
  worstFirst,
} from '@remora/protocol';
import type { Founders } from './cluster/cluster-identity.ts';
import type { ExposureCheck } from './cluster/exposure-check.ts';
import type { KnownCluster } from './cluster/known-cluster.ts';

export interface NodeHealthDeps {
  readonly clock: Clock;
  readonly nodeId: number;
  readonly name: string;
  readonly cluster: Pick<KnownCluster, 'view' | 'nodes'> & {
    readonly addresses: Pick<KnownCluster['addresses'], 'next'>;
  };
  readonly founders: Founders | undefined;
  readonly space: () => NodeSpace;
  /** `--disk-reserve` */
  readonly reserveBytes: number;
  readonly logHangs: () => boolean;
  /** When each certificate of this node expires. Absent without TLS. */
  readonly certificates?: (() => readonly CertificateExpiry[]) | undefined;
  /** Names of hosts that this node dials and cannot resolve. */
  readonly failedLookups?: (() => readonly FailedLookup[]) | undefined;
  /** How the clocks of this node differ from those of the masters' leader; undefined: little. */
  readonly clockDifference: () => ClockDifference | undefined;
  /** Whether the node is open to everybody. */
  readonly exposure?: Pick<ExposureCheck, 'conditions'> | undefined;
  /** Undefined while the leader of the masters answers. */
  readonly mastersSilence: () => MastersSilence | undefined;
}

/** A certificate that this node uses. */
export interface CertificateExpiry {
  readonly purpose: 'client' | 'peer';
  readonly expiresMs: number;
}

/** The answer to a load balancer, with the list for people, which names no keys (HC4). */
export interface Readiness {
  readonly ready: boolean;
  /** The reasons; empty if it is ready. */
  readonly reasons: readonly string[];
  readonly conditions: readonly NodeCondition[];
}

export interface NodeCondition extends HealthCondition {
  /** The condition concerns this node, not another one or the cluster. */
  readonly own: boolean;
}

/** Longer than an election of the masters takes. */
const MASTERS_SILENT_MS = 2_000;
const MIB = 2 ** 20;
const DAY_MS = 86_400_000;
/** Hosts that a text names. */
const HOSTS_NAMED_MAX = 5;
/** Operators have this long to replace a certificate after the first warning. */
const EXPIRES_SOON_DAYS = 14;
/** NH1. */
const FOUND_HERE: ReadonlySet<ConditionName> = new Set([
  'starting',
  'stopping',
  'diskReserve',
  'logHangs',
  'certificateExpires',
  'certificateExpired',
  'addressUnresolved',
  'clockAhead',
  'clockRate',
  'authenticationOff',
  'anonymousAllowed',
  'noMasters',
]);

export class NodeHealth {
  readonly #deps: NodeHealthDeps;
  #told: readonly HealthCondition[] = [];
  #stopping = false;

  constructor(deps: NodeHealthDeps) {
    this.#deps = deps;
  }

  /** Takes the conditions of the masters' answer. */
  learn(conditions: readonly HealthCondition[]): void {
    this.#told = conditions;
  }

  /** Called before anything is given up, so that clients go elsewhere first. */
  stopping(): void {
    this.#stopping = true;
  }

  /** For the masters, which send them to all nodes. */
  own(): readonly HealthCondition[] {
    const { nodeId, exposure } = this.#deps;
    return [
      ...this.#disk(),
      ...this.#log(),
      ...this.#certificates(),
      ...this.#lookups(),
      ...this.#clocks(),
      ...(exposure === undefined ? [] : exposure.conditions(nodeId)),
    ];
  }

  /** The worst first. */
  conditions(): readonly NodeCondition[] {
    const { nodeId } = this.#deps;
    return this.#with(this.#told).map((each) => ({ ...each, own: each.scope === 'node' && each.nodeId === nodeId }));
  }

  /** The masters' answer, completed with what this node knows better. */
  completed({ nodes, ranges, conditions }: CheckReport): CheckReport {
    return { nodes, ranges, conditions: this.#with(conditions) };
  }

  /** What is known while no leader of the masters answers; undefined if one does, as far as this node knows. */
  withoutMasters(): CheckReport | undefined {
    if (this.#masters().length === 0) return undefined;
    const { view, nodes } = this.#deps.cluster;
    return { nodes: nodes.length, ranges: view?.ranges.length ?? 0, conditions: this.#with(this.#told) };
  }

  /** NH2. */
  readiness(): Readiness {
    const conditions = this.conditions().map(withoutKeys);
    const othersServe = this.#othersServe();
    const against = conditions.filter((condition) => {
      const unready = condition.own ? makesUnready(condition) : undefined;
      return unready === 'always' || (unready === 'unlessAlone' && othersServe);
    });
    return { ready: against.length === 0, reasons: against.map(({ text }) => text), conditions };
  }

  /** NH1. */
  #with(told: readonly HealthCondition[]): readonly HealthCondition[] {
    const { nodeId } = this.#deps;
    const others = told.filter(({ name, nodeId: of }) => !(FOUND_HERE.has(name) && (of === nodeId || of === 0)));
    return worstFirst([...this.#masters(), ...this.own(), ...others, ...this.#life()]);
  }

  *#life(): Generator<HealthCondition> {
    const { nodeId, name, cluster } = this.#deps;
    if (this.#stopping) yield healthCondition('stopping', { nodeId }, `node ${name} is stopping`);
    else if (cluster.view === undefined) {
      yield healthCondition('starting', { nodeId }, `node ${name} is starting: it has not heard from the masters yet`);
    }
  }

  *#disk(): Generator<HealthCondition> {
    const { nodeId, name, reserveBytes } = this.#deps;
    const space = this.#deps.space();
    if (!isBelowReserve(space, reserveBytes)) return;
    const text =
      `the disk of node ${name} has ${Math.floor(space.availableBytes / MIB)} MiB free, less than the ` +
      `reserve of ${Math.ceil(reserveBytes / MIB)} MiB (--disk-reserve): the ranges that it leads refuse new values`;
    yield healthCondition('diskReserve', { nodeId }, text);
  }

  *#log(): Generator<HealthCondition> {
    const { nodeId, name } = this.#deps;
    if (!this.#deps.logHangs()) return;
    const text = `the disk of node ${name} does not respond: the node leads nothing until its log can be written again`;
    yield healthCondition('logHangs', { nodeId }, text);
  }

  *#certificates(): Generator<HealthCondition> {
    const { nodeId, name: node, clock, certificates } = this.#deps;
    for (const { purpose, expiresMs } of certificates?.() ?? []) {
      const daysLeft = Math.floor((expiresMs - clock.wallMs()) / DAY_MS);
      if (daysLeft >= EXPIRES_SOON_DAYS) continue;
      const of = `the certificate of node ${node} for ${purpose === 'peer' ? 'other nodes' : 'clients'}`;
      const name = daysLeft < 0 ? 'certificateExpired' : 'certificateExpires';
      const when = daysLeft < 0 ? 'has expired' : `expires in ${daysLeft} ${daysLeft === 1 ? 'day' : 'days'}`;
      const flag = purpose === 'peer' ? '--tls-peer-cert' : '--tls-cert';
      yield healthCondition(name, { nodeId }, `${of} ${when}: replace the files of ${flag}`);
    }
  }

  *#lookups(): Generator<HealthCondition> {
    const { nodeId, name, failedLookups } = this.#deps;
    const failed = failedLookups?.() ?? [];
    if (failed.length === 0) return;
    const listed = failed.slice(0, HOSTS_NAMED_MAX).map(({ host, code }) => {
      const names = this.#namesAt(host);
      return `${host} (${code})${names.length === 0 ? '' : `, the address of ${names.join(', ')}`}`;
    });
    const more = failed.length - listed.length;
    const text = `node ${name} cannot resolve ${listed.join('; ')}${more === 0 ? '' : `; and ${more} more`}`;
    yield healthCondition('addressUnresolved', { nodeId }, text);
  }

  /** Nodes, and founders that the masters have not heard of, that would be dialled at that host next. */
  #namesAt(host: string): readonly string[] {
    const { cluster, founders } = this.#deps;
    const members = (founders?.names ?? []).map((name, i) => ({ nodeId: i + 1, name }));
    const there = [...cluster.nodes, ...members].filter(({ nodeId }) =>
      cluster.addresses.next(nodeId)?.startsWith(`${host}:`),
    );
    return [...new Set(there.map(({ name }) => name))];
  }

  *#clocks(): Generator<HealthCondition> {
    const { nodeId, name, cluster, clockDifference } = this.#deps;
    const difference = clockDifference();
    if (difference === undefined) return;
    const { leader, aheadMs, fasterPercent } = difference;
    const other = cluster.nodes.find((node) => node.nodeId === leader)?.name ?? `node ${leader}`;
    const than = `than the clock of ${other}, which leads the masters`;
    if (aheadMs !== 0) {
      const by = `${(Math.abs(aheadMs) / 1_000).toFixed(1)} s`;
      const text = `the clock of node ${name} shows ${by} ${aheadMs > 0 ? 'more' : 'less'} ${than}`;
      yield healthCondition('clockAhead', { nodeId }, text);
    }
    if (fasterPercent !== 0) {
      const by = `${Math.abs(fasterPercent).toFixed(1)} % ${fasterPercent > 0 ? 'faster' : 'slower'}`;
      yield healthCondition('clockRate', { nodeId }, `the clock of node ${name} runs ${by} ${than}`);
    }
  }

  #masters(): readonly HealthCondition[] {
    const silence = this.#deps.mastersSilence();
    const silentMs = silence === undefined ? 0 : this.#deps.clock.monotonicMs() - silence.sinceMs;
    if (silence === undefined || silentMs < MASTERS_SILENT_MS) return [];
    const since = formatDurationMs(Math.floor(silentMs / 1_000) * 1_000);
    const text = `no leader of the masters has answered for ${since}${this.#whoAnswers(silence)}`;
    return [healthCondition('noMasters', {}, text)];
  }

  /** `1 of 3 founders is up (n1); waiting for n2 (10.0.0.2:7481), n3 (10.0.0.3:7481)`. */
  #whoAnswers({ answering }: MastersSilence): string {
    const { view } = this.#deps.cluster;
    const masters = this.#masterNames();
    if (masters.length === 0) return '';
    const there = masters.filter(({ nodeId }) => answering.has(nodeId)).map(({ name }) => name);
    const missing = masters.filter(({ nodeId }) => !answering.has(nodeId)).map((master) => this.#placeOf(master));
    const what = view === undefined ? 'founders' : 'masters';
    const names = there.length === 0 ? '' : ` (${there.join(', ')})`;
    const count = `: ${there.length} of ${masters.length} ${what} ${there.length === 1 ? 'is' : 'are'} up${names}`;
    return missing.length === 0 ? `${count}, but none of them leads` : `${count}; waiting for ${missing.join(', ')}`;
  }

  #placeOf({ nodeId, name }: { readonly nodeId: number; readonly name: string }): string {
    return `${name} (${this.#deps.cluster.addresses.next(nodeId) ?? 'address unknown'})`;
  }

  /** According to the masters' last answer; before that, the founders of the cluster. */
  #masterNames(): readonly { readonly nodeId: number; readonly name: string }[] {
    const { cluster, founders } = this.#deps;
    if (cluster.view === undefined) return (founders?.names ?? []).map((name, i) => ({ nodeId: i + 1, name }));
    const masters = cluster.view.nodes.filter(({ descriptor }) => descriptor.roles.includes('master'));
    return masters.map(({ descriptor }) => descriptor).sort((a, b) => a.nodeId - b.nodeId);
  }

  /** NH2. */
  #othersServe(): boolean {
    if (this.#masters().length > 0 || this.#unlistedMayBeUnready()) return false;
    const { nodeId, cluster } = this.#deps;
    const unready = new Set(this.#told.flatMap((each) => (makesUnready(each) === undefined ? [] : [each.nodeId])));
    return (cluster.view?.nodes ?? []).some(
      ({ descriptor, state }) =>
        descriptor.nodeId !== nodeId &&
        descriptor.roles.includes('gateway') &&
        state === 'up' &&
        !unready.has(descriptor.nodeId),
    );
  }
  /** The masters list conditions that make nodes unready before all others (master/admin/cluster-health.ts). */
  #unlistedMayBeUnready(): boolean {
    const isCut = this.#told.some(({ name }) => name === 'notListed');
    return isCut && this.#told.every((each) => each.name === 'notListed' || makesUnready(each) !== undefined);
  }
}
