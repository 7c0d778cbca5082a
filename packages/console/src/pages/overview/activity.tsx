import type { NodeJson } from '@remora/gateway/http/json/cluster';
import type { ActivityJson, NodeActivityJson } from '@remora/gateway/http/json/history';
import { useMemo } from 'preact/hooks';
import type { Resource } from '../../app/hooks.ts';
import { Chart } from '../../kit/chart.tsx';
import { Card } from '../../kit/page.tsx';
import { Loaded } from '../../kit/states.tsx';
import { latency, rate } from '../../logic/format.ts';
import { LINES_MAX, shownLines } from '../../logic/line-choice.ts';

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

/** The last hour of each node, or of the busiest ones and of all together. */
export function Activity({ of, nodes }: ActivityProps) {
  const count = of.data?.nodes.length ?? 0;
  return (
    <Card
      title="The last hour, by node"
      aside={count > LINES_MAX && `the ${LINES_MAX - 1} highest of ${count} nodes, and the median`}
    >
      <Loaded of={of}>{(activity) => <Charts activity={activity} names={namesOf(nodes)} />}</Loaded>
    </Card>
  );
}

interface ChartsProps {
  readonly activity: ActivityJson;
  /** Of nodes, by their ids; as text, which is equal while the names are. */
  readonly names: string;
}

/** The overview is drawn anew with each live state; the charts only with new points. */
function Charts({ activity: { times, nodes: active }, names }: ChartsProps) {
  const lines = useMemo(() => {
    const known = JSON.parse(names) as Readonly<Record<number, string>>;
    const name = (id: number): string => known[id] ?? `node ${id}`;
    return CHARTS.map(({ of: measure }) =>
      shownLines(active.map((node) => ({ name: name(node.nodeId), values: node[measure] }))),
    );
  }, [active, names]);
  return (
    <div class="charts">
      {CHARTS.map(({ title, of: measure, unit }, at) => (
        <Chart key={measure} title={title} times={times} unit={unit} lines={lines[at] ?? []} />
      ))}
    </div>
  );
}

function namesOf(nodes: readonly NodeJson[] = []): string {
  return JSON.stringify(Object.fromEntries(nodes.map(({ id, name }) => [id, name])));
}
