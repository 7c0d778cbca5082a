import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useStore } from '../app/hooks.ts';
import { isDark } from '../app/theme.ts';
import { absolute } from '../logic/format.ts';
import { LINES_MAX, type Line } from '../logic/line-choice.ts';

interface ChartProps {
  readonly title: string;
  /** Ms since 1970. The same array stands for the same times, and those of `lines` likewise: it is drawn once. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly unit: (value: number) => string;
}

const HEIGHT = 150;
const SPAN_S = 3_600;

/** Lines over time. Its latest values are in the text beside it, for those who do not see it. */
export function Chart({ title, times, lines, unit }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const dark = useStore(isDark);
  const names = lines.map(({ name }) => name).join('\n');
  const data = useMemo(
    () => [times.map((at) => at / 1_000), ...lines.map(({ values }) => [...values])] as uPlot.AlignedData,
    [times, lines],
  );
  const latest = useRef(data);
  latest.current = data;
  const shown = useRef(unit);
  shown.current = unit;

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const made = new uPlot(optionsOf(element, names.split('\n'), shown.current), latest.current, element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [names, dark]);

  useEffect(() => plot.current?.setData(data), [data]);

  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="chart-legend">
          {lines.map(({ name, values }, at) => (
            <span key={name} class="chart-key">
              <i class={`swatch swatch-${at % LINES_MAX}`} aria-hidden="true" />
              {name} <b>{unit(lastOf(values))}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div class="chart-plot" ref={box} role="img" aria-label={`${title} over time`} />
    </figure>
  );
}

/** From the data: of a single time, the chart would make a day. */
function lastHour({ data: [times] }: uPlot, _: number, max: number): [number, number] {
  const last = times.at(-1) ?? max;
  return [last - SPAN_S, last];
}

/** A line of one value is not seen without its point. */
function isShort(plot: uPlot, line: number): boolean {
  const known = (plot.data[line] ?? []).filter((value) => value !== null);
  return known.length < 3;
}

function timeOfDay(seconds: number): string {
  return absolute(seconds * 1_000).slice(11, 16);
}

function lastOf(values: readonly (number | null)[]): number {
  return values.findLast((value) => value !== null) ?? Number.NaN;
}

function optionsOf(element: HTMLElement, names: readonly string[], unit: (value: number) => string): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--grid'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  } satisfies uPlot.Axis;
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    padding: [8, 8, 0, 0],
    // The last hour, however little of it is known: the lines begin where the cluster began.
    scales: {
      x: { range: lastHour },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis, space: 70, values: (_, ticks) => ticks.map(timeOfDay) },
      { ...axis, size: 62, space: 36, values: (_, ticks) => ticks.map(unit) },
    ],
    series: [
      {},
      ...names.map((label, at) => ({
        label,
        stroke: colour(`--line-${at % LINES_MAX}`),
        width: 1.5,
        points: { show: isShort, size: 5 },
        spanGaps: false,
      })),
    ],
  };
}
