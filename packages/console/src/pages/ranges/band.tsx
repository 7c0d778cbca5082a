import type { NodeJson } from '@remora/gateway/http/json/cluster';
import { useEffect, useRef, useState } from 'preact/hooks';
import { nodeName } from '../../app/cluster-hook.ts';
import { useStore } from '../../app/hooks.ts';
import { go } from '../../app/router.ts';
import { isDark } from '../../app/theme.ts';
import { visibleText } from '../../logic/visible-text.ts';
import type { RangeRow } from './range-row.ts';

interface BandProps {
  readonly ranges: readonly RangeRow[];
  readonly nodes: readonly NodeJson[];
}

const ROW = 14;
const ROW_DENSE = 5;
/** With hundreds of nodes, their rows share this, and the table stays in sight. */
const HEIGHT_MAX = 300;
/** With more nodes, the rows are thin and have no names. */
const NAMED_MAX = 12;
const LABEL = 64;
const COLOURS = 8;

/**
 * The ranges from left to right, a row for each node: full where it leads the range, light where it has a replica. The
 * table below has the same for those who do not see it.
 */
export function Band({ ranges, nodes }: BandProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState<number>();
  const dark = useStore(isDark);
  const shown = nodes.filter(({ duty }) => duty !== 'removed');
  const isNamed = shown.length <= NAMED_MAX;
  const height = Math.min(HEIGHT_MAX, Math.max(1, shown.length) * (isNamed ? ROW : ROW_DENSE));
  const label = isNamed ? LABEL : 0;

  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (box === null || box === undefined) return;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, { ranges, nodes: shown, width, height, label });
  }, [ranges, nodes, width, height, dark]);

  const indexAt = (x: number): number | undefined => {
    const index = Math.floor(((x - label) / (width - label)) * ranges.length);
    return index >= 0 && index < ranges.length ? index : undefined;
  };
  const range = at === undefined ? undefined : ranges[at];
  return (
    <>
      <div class="band" style={{ height: `${height}px` }}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${ranges.length} ranges on ${shown.length} nodes`}
          onMouseMove={(event) => setAt(indexAt(event.offsetX))}
          onMouseLeave={() => setAt(undefined)}
          onClick={(event) => {
            const found = ranges[indexAt(event.offsetX) ?? -1];
            if (found !== undefined) go('ranges', { range: found.id });
          }}
        />
      </div>
      <p class="band-text muted" aria-hidden="true">
        {range === undefined
          ? 'Full: leads the range. Light: has a replica. Point at a column to see its range, click to open it.'
          : `Range ${range.id}: ${visibleText(range.start)} to ${visibleText(range.end)}, led by ${nodeName(nodes, range.leaderNode)}`}
      </p>
    </>
  );
}

interface Drawing {
  readonly ranges: readonly RangeRow[];
  readonly nodes: readonly NodeJson[];
  readonly width: number;
  readonly height: number;
  readonly label: number;
}

function draw(canvas: HTMLCanvasElement, { ranges, nodes, width, height, label }: Drawing): void {
  const scale = devicePixelRatio;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  if (context === null) return;
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const row = height / Math.max(1, nodes.length);
  const column = (width - label) / Math.max(1, ranges.length);
  const gap = column > 4 ? 1 : 0;
  const rowGap = row > 3 ? 1 : 0;
  if (label > 0) {
    context.fillStyle = style.getPropertyValue('--muted');
    context.font = '11px system-ui, sans-serif';
    nodes.forEach(({ name }, line) => {
      context.fillText(visibleText(name).slice(0, 9), 0, line * row + row - 3);
    });
  }
  const colours = Array.from({ length: COLOURS }, (_, colour) => style.getPropertyValue(`--line-${colour}`));
  const lineOf = new Map(nodes.map(({ id }, line) => [id, line]));
  // By range: of hundreds of nodes, each range is on a few.
  ranges.forEach(({ replicas, leaderNode }, at) => {
    for (const { nodeId } of replicas) {
      const line = lineOf.get(nodeId);
      if (line === undefined) continue;
      context.fillStyle = colours[line % COLOURS] ?? '';
      context.globalAlpha = leaderNode === nodeId ? 1 : 0.25;
      context.fillRect(label + at * column, line * row, Math.max(column - gap, 0.5), row - rowGap);
    }
  });
}
