/** The views in which a node reports problems: `/ready`, the metrics, `remora status` and `remora admin check`. */
import { expect } from 'vitest';
import { runHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import type { NodeProcess } from './node-process.ts';

export interface ShownCondition {
  readonly name: string;
  readonly severity: string;
  readonly scope: string;
  readonly rangeId: number;
  readonly nodeId: number;
  readonly text: string;
  readonly advice: string;
  readonly docs: string;
}

export interface ReadyBody {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  readonly conditions: readonly (ShownCondition & { readonly own: boolean })[];
}

const TIMEOUT_MS = 30_000;

export async function readyOf(node: NodeProcess): Promise<{ readonly status: number; readonly body: ReadyBody }> {
  const response = await fetch(`http://${node.health}/ready`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  return { status: response.status, body: (await response.json()) as ReadyBody };
}

/**
 * What each of the four views shows, sorted by name. In the metrics, conditions with the same name count once. `flags`:
 * further arguments of the commands.
 */
export async function viewsOf(node: NodeProcess, flags: readonly string[] = []) {
  const [ready, metrics, status, check] = await Promise.all([
    readyOf(node),
    node.metrics('remora_condition'),
    runHere([node.client], ['status', '--json', ...flags]),
    runHere([node.client], ['admin', 'check', '--json', ...flags]),
  ]);
  const counted = [...metrics].flatMap(([labels, count]) => {
    const [, name = ''] = /name="(\w+)"/.exec(labels) ?? [];
    return Array<string>(count).fill(name);
  });
  return {
    ready: byName(ready.body.conditions),
    metrics: counted.sort(),
    status: byName((JSON.parse(status.out || '{"conditions":[]}') as ReadyBody).conditions),
    check: byName((JSON.parse(check.out || '{"conditions":[]}') as ReadyBody).conditions),
    checkCode: check.code,
  };
}

/** Waits until all views show exactly these conditions. */
export async function eventuallyShown(
  node: NodeProcess,
  expected: readonly unknown[],
  flags: readonly string[] = [],
): Promise<void> {
  await eventually(`${node.name} shows ${JSON.stringify(expected)} everywhere`, async () => {
    const { ready, metrics, status, check, checkCode } = await viewsOf(node, flags);
    expect({ ready, status, check }).toEqual({ ready: expected, status: expected, check: expected });
    expect(metrics).toEqual(ready.map(({ name }) => name));
    expect(checkCode).toBe(ready.every(({ severity }) => severity === 'info') ? 0 : 1);
    return true;
  });
}

function byName<T extends ShownCondition>(conditions: readonly T[]): readonly T[] {
  return conditions.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.nodeId - b.nodeId));
}
