import type { MetricsRegistry } from '@remora/base/node';
import { HEALTH_CONDITIONS } from '@remora/protocol';
import { VERSION } from '../version.ts';
import type { NodeCondition } from './health.ts';
import type { EntryDeps } from './platform.ts';

/** A node's metrics besides those of the process; read on request, so that they cost nothing otherwise. */
export function nodeMetrics(
  metrics: MetricsRegistry,
  deps: Pick<
    EntryDeps,
    | ('host' | 'log' | 'engine' | 'space' | 'store' | 'admission' | 'inFlight' | 'lookupStats' | 'health' | 'versions')
    | 'historyStats'
  >,
): void {
  const gauge = (name: string, help: string, labels: readonly string[] = []) =>
    metrics.gauge({ name: `remora_${name}`, help, labels });
  const counter = (name: string, help: string, labels: readonly string[] = []) =>
    metrics.observedCounter({ name: `remora_${name}`, help, labels });
  const ofRange = (name: string, help: string) =>
    metrics.clearableGauge({ name: `remora_range_${name}`, help, labels: ['range'] });
  const revision = ofRange('revision', 'Newest revision of the range on this node.');
  const compacted = ofRange('compact_revision', 'Oldest revision that can be read.');
  const leads = ofRange('leader', '1 when this node leads the range.');
  const term = ofRange('term', 'Raft term of the local replica.');
  const applied = ofRange('applied_index', 'Last log index applied by the local replica.');
  const commit = ofRange('commit_index', 'Last log index known to be committed by the local replica.');
  const bytes = ofRange('bytes', 'Bytes of keys and values.');
  const keys = ofRange('keys', 'Number of keys.');
  const leases = ofRange('leases', 'Number of leases.');
  const watches = ofRange('watches', 'Number of open watches on this node.');
  const outcomes = ofRange('remembered_outcomes', 'Request outcomes remembered for deduplication.');
  const sessions = gauge('sessions', 'Open sessions and leases of the ranges that this node leads.');
  const logBytes = gauge('log_bytes', 'Bytes in the write-ahead log.');
  const logSegments = gauge('log_segments', 'Segments of the write-ahead log.');
  const logSyncs = counter('log_syncs_total', 'Synced writes to the log.');
  const logAppends = counter('log_appends_total', 'Appends to the log.');
  const diskBytes = gauge('disk_bytes', 'Size of the disk of the data directory; 0 if unknown.');
  const diskAvailable = gauge('disk_available_bytes', 'Free space on the disk of the data directory.');
  const pendingBytes = gauge('engine_pending_bytes', 'Bytes changed in memory since the last checkpoint.');
  const host = counter('raft_events_total', 'What the Raft host did, by event.', ['event']);
  const entryCache = gauge('raft_entry_cache_bytes', 'Bytes of log entries that are kept in memory, of all ranges.');
  const requests = counter('gateway_requests_total', 'Client requests admitted, by class.', ['class']);
  const refused = counter('gateway_refused_total', 'Requests refused with RESOURCE_EXHAUSTED, by reason.', ['reason']);
  const malformed = counter('gateway_malformed_total', 'Requests refused as invalid, by protocol.', ['door']);
  const lookups = counter('gateway_lookups_total', 'Route lookups of this gateway, by what was asked.', ['of']);
  const conditions = gauge('condition', 'Current health conditions, by name; own: those of this node itself.', [
    'name',
    'severity',
    'own',
  ]);
  const hasLeader = gauge(
    'has_leader',
    'Whether a leader of the masters answers, and each range here knows its leader.',
  );
  const leaderless = gauge('leaderless_replicas', 'Replicas of this node that know no leader of their range.');
  const leaderChanges = counter('leader_changes_total', 'Times that a replica of this node learned of another leader.');
  const inFlight = gauge('in_flight', 'Operations in progress on this node, by kind; 0 when idle.', ['what']);
  const inForce = gauge('cluster_version', 'Version in force as far as the node knows: 1,000 × major + minor.');
  const historyBytes = gauge('history_bytes', "Memory of the masters' leader for load by key and rates of nodes.");
  const historySeconds = gauge('history_seconds', "For how long the masters' leader has load by key.");
  gauge('build_info', 'Always 1: which version runs, on which version of Node.js.', ['version', 'node'])
    .labels(VERSION, process.versions.node)
    .set(1);
  metrics.onRender(() => {
    const sums: Record<string, number> = { ...deps.host.inFlight(), ...deps.inFlight() };
    const { stats } = deps.admission;
    let open = 0;
    let withoutLeader = 0;
    inForce.labels().set(deps.versions.inForce);
    const history = deps.historyStats();
    historyBytes.set(history?.bytes ?? 0);
    historySeconds.set((history?.minutes ?? 0) * 60);
    for (const [of, count] of Object.entries(deps.lookupStats)) lookups.labels(of).set(count);
    for (const [name, count] of Object.entries(stats.admitted)) requests.labels(name).set(count);
    for (const [reason, count] of Object.entries(stats.refused)) refused.labels(reason).set(count);
    for (const [door, count] of Object.entries(stats.malformed)) malformed.labels(door).set(count);
    // Ranges come and go.
    for (const each of [revision, compacted, leads, term, applied, commit, bytes, keys, leases, watches, outcomes]) {
      each.clear();
    }
    for (const replica of deps.store?.replicas() ?? []) {
      const id = String(replica.rangeId);
      const { state } = replica;
      const raft = replica.group.status();
      revision.labels(id).set(state.revision);
      compacted.labels(id).set(state.compactRevision);
      leads.labels(id).set(replica.leading ? 1 : 0);
      term.labels(id).set(raft.term);
      applied.labels(id).set(raft.applied);
      commit.labels(id).set(raft.commit);
      bytes.labels(id).set(state.bytes);
      keys.labels(id).set(state.keys);
      leases.labels(id).set(state.leases.size);
      watches.labels(id).set(replica.hub.size);
      outcomes.labels(id).set(state.outcomes.count);
      if (replica.leading) open += state.leases.size;
      if (raft.leader === 0) withoutLeader++;
      const { proposals, lockCalls, transactions, transactionWaits } = replica.inFlight();
      for (const [what, count] of Object.entries({ proposals, lockCalls, transactions, transactionWaits })) {
        sums[what] = (sums[what] ?? 0) + count;
      }
    }
    for (const [what, count] of Object.entries(sums)) inFlight.labels(what).set(count);
    sessions.set(open);
    const log = deps.log.stats();
    logBytes.set(log.bytes);
    logSegments.set(log.segments);
    logSyncs.set(log.syncs);
    logAppends.set(log.appends);
    const { capacityBytes, availableBytes } = deps.space();
    diskBytes.set(capacityBytes);
    diskAvailable.set(availableBytes);
    pendingBytes.set(deps.engine.pending().bytes);
    const found = deps.health.conditions();
    for (const { labels, count } of conditionCounts(found)) conditions.labels(...labels).set(count);
    leaderless.set(withoutLeader);
    const isLed = found.every(({ name }) => name !== 'noMasters' && name !== 'starting');
    hasLeader.set(isLed && withoutLeader === 0 ? 1 : 0);
    const { entryCacheBytes, leaderChanges: changes, ...events } = deps.host.stats();
    leaderChanges.set(changes);
    entryCache.set(entryCacheBytes);
    for (const [name, count] of Object.entries(events)) host.labels(name).set(count);
  });
}

/** Contains every name, so that the value of a condition that has passed falls to 0. */
export function conditionCounts(
  conditions: readonly NodeCondition[],
): readonly { readonly labels: readonly [string, string, string]; readonly count: number }[] {
  const named = Object.entries(HEALTH_CONDITIONS).flatMap(([name, { severity, scope }]) =>
    (scope === 'node' ? [true, false] : [false]).map((own) => ({ name, severity, own })),
  );
  return named.map(({ name, severity, own }) => ({
    labels: [name, severity, own ? 'yes' : 'no'],
    count: conditions.filter((each) => each.name === name && each.own === own).length,
  }));
}
