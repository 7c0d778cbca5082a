import type { NodeJson } from '@remora/gateway/http/json/cluster';
import type { ActivityJson, NodeActivityJson } from '@remora/gateway/http/json/history';
import { nodeName } from '../../app/cluster-hook.ts';
import type { Resource } from '../../app/hooks.ts';
import { Chart } from '../../kit/chart.tsx';
import { Card } from '../../kit/page.tsx';
import { Loaded } from '../../kit/states.tsx';
import { latency, rate } from '../../logic/format.ts';

type Measure = Exclude<keyof NodeActivityJson, 'nodeId'>;

const CHARTS: readonly { readonly title: string; readonly of: Measure; readonly unit: (value: number) => string }[] = [
  { title: 'Requests per second', of: 'requestsPerS', unit: rate },
  { title: 'Latency, 99th percentile', of: 'p99Ms', unit: latency },
  { title: 'Latency, median', of: 'p50Ms', unit: latency },
  { title: 'Disk sync, 99th percentile', of: 'fsyncP99Ms', unit: latency },
];

interface ActivityProps {
  readonly of: Resource<ActivityJson>;
  readonly nodes: readonly NodeJson[] | undefined;
}

/** The last hour of each node. */
export function Activity({ of, nodes }: ActivityProps) {
  return (
    <Card title="The last hour, by node">
      <Loaded of={of}>
        {({ times, nodes: active }) => (
          <div class="charts">
            {CHARTS.map(({ title, of: measure, unit }) => (
              <Chart
                key={measure}
                title={title}
                times={times}
                unit={unit}
                lines={active.map((node) => ({ name: nodeName(nodes, node.nodeId), values: node[measure] }))}
              />
            ))}
          </div>
        )}
      </Loaded>
    </Card>
  );
}
