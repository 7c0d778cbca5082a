/** Calls about the cluster: its nodes, ranges, operators, schedulers and settings. */

import type {
  ClusterJson,
  OperatorJson,
  OperatorsJson,
  RangeJson,
  RangesJson,
  RebalanceJson,
  SchedulersJson,
  SettingsJson,
  UpgradeJson,
  WhyJson,
} from '@remora/gateway/http/json/cluster';
import type { ActivityJson, HeatJson, HeatMeasure } from '@remora/gateway/http/json/history';
import { percentEncoded } from '../logic/bytes.ts';
import { totalOf } from '../logic/heat.ts';
import { call, get } from './client.ts';

const RANGES_PAGE = 500;
/** The page of ranges shows so many; a cluster with more is searched by key. */
export const RANGES_MAX = 5_000;

export function cluster(signal: AbortSignal): Promise<ClusterJson> {
  return get('/v1/cluster', {}, signal);
}

export function activity(signal: AbortSignal): Promise<ActivityJson> {
  return get('/v1/cluster/activity', { minutes: 60 }, signal);
}

export interface HeatQuery {
  readonly what: HeatMeasure;
  readonly minutes: number;
  /** Places; empty: the first, the last. */
  readonly start: string;
  readonly end: string;
}

/** The key visualizer has so many columns of keys. */
const HEAT_COLUMNS = 512;

export function heat(query: HeatQuery, signal: AbortSignal): Promise<HeatJson> {
  return get('/v1/cluster/heat', { ...query, columns: HEAT_COLUMNS }, signal);
}

const BUSY_MINUTES = 10;

/** Whether keys are read or written more in the last minutes. */
export async function busierMeasure(signal: AbortSignal): Promise<HeatMeasure> {
  const query = { minutes: BUSY_MINUTES, start: '', end: '', columns: 1 };
  const of = (what: HeatMeasure): Promise<HeatJson> => get('/v1/cluster/heat', { ...query, what }, signal);
  const [reads, writes] = await Promise.all([of('reads'), of('writes')]);
  return totalOf(writes) > totalOf(reads) ? 'writes' : 'reads';
}

export async function ranges(signal: AbortSignal): Promise<readonly RangeJson[]> {
  const found: RangeJson[] = [];
  let from: string | undefined;
  do {
    const page = await get<RangesJson>('/v1/cluster/ranges', { from, limit: RANGES_PAGE }, signal);
    found.push(...page.ranges);
    from = page.next;
  } while (from !== undefined && found.length < RANGES_MAX);
  return found;
}

/** The range that has a place. */
export async function rangeAt(from: string, signal: AbortSignal): Promise<RangeJson | undefined> {
  return (await get<RangesJson>('/v1/cluster/ranges', { from, limit: 1 }, signal)).ranges[0];
}

export async function hotRanges(by: string, signal: AbortSignal): Promise<readonly RangeJson[]> {
  return (await get<RangesJson>('/v1/cluster/hot-ranges', { by, limit: 50 }, signal)).ranges;
}

export function range(id: number, signal: AbortSignal): Promise<RangeJson> {
  return get(`/v1/cluster/ranges/${id}`, {}, signal);
}

export async function why(of: 'ranges' | 'nodes', id: number, signal: AbortSignal): Promise<readonly string[]> {
  return (await get<WhyJson>(`/v1/cluster/${of}/${id}/why`, {}, signal)).lines;
}

export type RangeChange = 'split' | 'merge' | 'move' | 'add-replica' | 'remove-replica';

/** Begins the change, if the range is as the caller saw it; the operator continues by itself. */
export function changeRange(
  { id, epoch }: Pick<RangeJson, 'id' | 'epoch'>,
  change: RangeChange,
  body: Readonly<Record<string, string | number>>,
): Promise<OperatorJson> {
  return call('POST', `/v1/cluster/ranges/${id}/${change}`, { body: { ...body, ...epoch } });
}

export function transferLeader(id: number, to: number): Promise<{ readonly fromNode: number }> {
  return call('POST', `/v1/cluster/ranges/${id}/transfer`, { body: { to } });
}

export function setDuty(node: number, duty: string, forMs?: number): Promise<unknown> {
  return call('PUT', `/v1/cluster/nodes/${node}/duty`, {
    body: { duty, ...(forMs === undefined ? {} : { for: forMs }) },
  });
}

export function setLogLevel(node: number, level: string): Promise<{ readonly level: string; readonly before: string }> {
  return call('PUT', `/v1/cluster/nodes/${node}/log-level`, { body: { level } });
}

export interface OperatorSearch {
  readonly ended: boolean;
  readonly range?: number | undefined;
}

export async function operators(
  { ended, range: id }: OperatorSearch,
  signal: AbortSignal,
): Promise<readonly OperatorJson[]> {
  const query = { ended: String(ended), range: id, limit: 500 };
  return (await get<OperatorsJson>('/v1/cluster/operators', query, signal)).operators;
}

export function cancelOperator(id: number): Promise<OperatorJson> {
  return call('DELETE', `/v1/cluster/operators/${id}`);
}

export function schedulers(signal: AbortSignal): Promise<SchedulersJson> {
  return get('/v1/cluster/schedulers', {}, signal);
}

/** 0 resumes it. */
export function pauseScheduler(name: string, pausedMs: number): Promise<SchedulersJson> {
  return call('PUT', `/v1/cluster/schedulers/${percentEncoded(name)}`, { body: { pausedFor: pausedMs } });
}

export function rebalancePlan(signal: AbortSignal): Promise<RebalanceJson> {
  return get('/v1/cluster/rebalance', {}, signal);
}

export function rebalance(): Promise<RebalanceJson> {
  return call('POST', '/v1/cluster/rebalance', { body: {} });
}

export function settings(signal: AbortSignal): Promise<SettingsJson> {
  return get('/v1/cluster/settings', {}, signal);
}

/** An empty value resets the setting to its default. */
export function setSetting(name: string, value: string): Promise<SettingsJson> {
  return call('PUT', `/v1/cluster/settings/${percentEncoded(name)}`, { body: { value } });
}

export function upgrade(signal: AbortSignal): Promise<UpgradeJson> {
  return get('/v1/cluster/upgrade', {}, signal);
}

export function finalizeUpgrade(version: string): Promise<UpgradeJson> {
  return call('POST', '/v1/cluster/upgrade/finalize', { body: { version } });
}
