import type { HeatJson } from '@remora/gateway/http/json/history';
import { useEffect, useRef, useState } from 'preact/hooks';
import { absolute, rate } from '../../logic/format.ts';
import { heatColour, intensity, largest } from '../../logic/heat-scale.ts';
import { visibleText } from '../../logic/visible-text.ts';

/** A minute of a column of keys. */
export interface Cell {
  readonly time: number;
  /** Places. */
  readonly from: string;
  readonly to: string;
  readonly value: number;
}

interface HeatMapProps {
  readonly matrix: HeatJson;
  select(cell: Cell): void;
  /** A span of keys was marked by dragging. */
  zoom(from: string, to: string): void;
}

const HEIGHT = 460;
/** Shorter drags count as clicks. */
const DRAG_MIN = 6;
const LABELS = 5;

/** Time from left to right, keys from top to bottom. */
export function HeatMap({ matrix, select, zoom }: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<Cell>();
  const dragFrom = useRef<number | undefined>(undefined);
  useEffect(() => {
    if (canvas.current !== null) draw(canvas.current, matrix);
  }, [matrix]);

  const cellAt = (event: MouseEvent): Cell | undefined => {
    const box = canvas.current;
    return box === null ? undefined : cellOf(matrix, event.offsetX / box.clientWidth, event.offsetY / box.clientHeight);
  };
  const release = (event: MouseEvent): void => {
    const from = dragFrom.current;
    dragFrom.current = undefined;
    if (from === undefined) return;
    const to = event.offsetY;
    if (Math.abs(to - from) < DRAG_MIN) {
      const cell = cellAt(event);
      if (cell !== undefined) select(cell);
      return;
    }
    const share = (y: number): number => y / (canvas.current?.clientHeight ?? HEIGHT);
    const first = columnAt(matrix, share(Math.min(from, to)));
    const last = columnAt(matrix, share(Math.max(from, to)));
    zoom(matrix.borders[first] ?? '', matrix.borders[last + 1] ?? '');
  };
  const { times, borders } = matrix;
  return (
    <>
      <div class="heat">
        <div class="heat-keys" aria-hidden="true">
          {Array.from({ length: LABELS }, (_, at) => (
            <span key={at}>{visibleText(borders[Math.round((at * (borders.length - 1)) / (LABELS - 1))] ?? '')}</span>
          ))}
        </div>
        <canvas
          ref={canvas}
          role="img"
          aria-label="Load by time and key; the list of the hottest ranges has the same in words"
          onMouseMove={(event) => setPointed(cellAt(event))}
          onMouseLeave={() => setPointed(undefined)}
          onMouseDown={(event) => {
            dragFrom.current = event.offsetY;
          }}
          onMouseUp={release}
        />
        <div class="heat-times" aria-hidden="true">
          <span>{absolute(times[0] ?? 0).slice(11, 16)}</span>
          <span>{absolute(times[Math.floor(times.length / 2)] ?? 0).slice(11, 16)}</span>
          <span>{absolute(times.at(-1) ?? 0).slice(11, 16)}</span>
        </div>
      </div>
      <p class="band-text muted" aria-hidden="true">
        {pointed === undefined
          ? 'Point at a place to read it, click to select it, drag over keys to see them closer.'
          : `${absolute(pointed.time).slice(11, 16)}: ${visibleText(pointed.from)} to ${visibleText(pointed.to)}: ${rate(pointed.value)} in this minute`}
      </p>
    </>
  );
}

function columnAt({ borders }: HeatJson, share: number): number {
  const columns = borders.length - 1;
  return Math.max(0, Math.min(columns - 1, Math.floor(share * columns)));
}

function cellOf(matrix: HeatJson, x: number, y: number): Cell | undefined {
  const { times, borders, values } = matrix;
  const line = Math.floor(x * times.length);
  const column = columnAt(matrix, y);
  const [time, from, to] = [times[line], borders[column], borders[column + 1]];
  if (time === undefined || from === undefined || to === undefined) return undefined;
  return { time, from, to, value: values[line]?.[column] ?? 0 };
}

/** More than a screen shows. */
const SHADES = 256;
const NOTHING = [0, 0, 0, 255];

/** A pixel a cell; the browser stretches it. */
function draw(canvas: HTMLCanvasElement, { times, borders, values }: HeatJson): void {
  const [width, height] = [times.length, Math.max(1, borders.length - 1)];
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  if (context === null) return;
  const image = context.createImageData(width, height);
  const most = largest(values);
  const colours = Array.from({ length: SHADES }, (_, shade) => [...heatColour(shade / (SHADES - 1)), 255]);
  values.forEach((row, x) => {
    row?.forEach((value, y) => {
      image.data.set(colours[Math.round(intensity(value, most) * (SHADES - 1))] ?? NOTHING, (y * width + x) * 4);
    });
  });
  context.putImageData(image, 0, 0);
}
