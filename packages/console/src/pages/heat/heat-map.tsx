import type { HeatJson } from '@remora/gateway/http/json/history';
import { useEffect, useRef, useState } from 'preact/hooks';
import { bytes, count, minuteOfDay, rate } from '../../logic/format.ts';
import { type Cell, cellBeside, cellNear, columnAt, columnsOf, firstCell, type Step } from '../../logic/heat.ts';
import { heatColour, intensity, largest } from '../../logic/heat-scale.ts';
import { endText, spanText, startText } from '../../logic/routing-key.ts';
import { visibleText } from '../../logic/visible-text.ts';

interface HeatMapProps {
  readonly matrix: HeatJson;
  readonly selected: Cell | undefined;
  select(cell: Cell): void;
  /** A span of keys was marked by dragging. */
  zoom(from: string, to: string): void;
}

const HEIGHT = 460;
/** Shorter drags count as clicks. */
const DRAG_MIN = 6;
/** A hot row may be so far from the pointer. */
const REACH = 5;
const LABELS = 5;

const STEPS: Readonly<Record<string, Step>> = {
  ArrowLeft: { lines: -1 },
  ArrowRight: { lines: 1 },
  ArrowUp: { columns: -1 },
  ArrowDown: { columns: 1 },
};

/** Time from left to right, keys from top to bottom. The table of the hottest keys has the same in words. */
export function HeatMap({ matrix, selected, select, zoom }: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<Cell>();
  const dragFrom = useRef<number | undefined>(undefined);
  useEffect(() => {
    if (canvas.current !== null) draw(canvas.current, matrix);
  }, [matrix]);

  const share = (y: number): number => y / (canvas.current?.clientHeight ?? HEIGHT);
  const cellAt = (event: MouseEvent): Cell | undefined => {
    const box = canvas.current;
    if (box === null) return undefined;
    return cellNear(matrix, event.offsetX / box.clientWidth, share(event.offsetY), share(REACH));
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
    const first = columnAt(matrix, share(Math.min(from, to)));
    const last = columnAt(matrix, share(Math.max(from, to)));
    zoom(matrix.borders[first] ?? '', matrix.borders[last + 1] ?? '');
  };
  const press = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = (selected && cellBeside(matrix, selected, step)) ?? selected ?? firstCell(matrix);
    if (next !== undefined) select(next);
  };
  const { times } = matrix;
  const shown = pointed ?? selected;
  return (
    <>
      <div class="heat">
        <Borders matrix={matrix} />
        <div class="heat-box">
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: the keyboard moves within it. */}
          <canvas
            ref={canvas}
            role="application"
            tabIndex={0}
            aria-label="Load by time and key. Arrow keys move between minutes and hot keys; the table below has the hottest keys."
            onMouseMove={(event) => setPointed(cellAt(event))}
            onMouseLeave={() => setPointed(undefined)}
            onMouseDown={(event) => {
              dragFrom.current = event.offsetY;
            }}
            onMouseUp={release}
            onKeyDown={press}
          />
          {selected !== undefined && <Outline matrix={matrix} cell={selected} />}
        </div>
        <div class="heat-times" aria-hidden="true">
          <span>{minuteOfDay(times[0] ?? 0)}</span>
          <span>{minuteOfDay(times[Math.floor(times.length / 2)] ?? 0)}</span>
          <span>{minuteOfDay(times.at(-1) ?? 0)}</span>
        </div>
      </div>
      <p class="heat-text muted" role="status">
        {shown === undefined
          ? 'Point at a place to read it, click to select it, drag over keys to see them closer.'
          : `${minuteOfDay(shown.time)}: ${visibleText(spanText(shown.from, shown.to))}: ${amountText(matrix, shown.value)}`}
      </p>
      <Scale matrix={matrix} />
    </>
  );
}

/** `1,200 reads in a minute (20 per second)`. */
export function amountText({ what, stepMs }: Pick<HeatJson, 'what' | 'stepMs'>, value: number): string {
  const perS = value / (stepMs / 1_000);
  return what === 'readBytes' || what === 'writeBytes'
    ? `${bytes(value)} in a minute (${bytes(perS)} per second)`
    : `${count(value)} ${what} in a minute (${rate(perS)} per second)`;
}

function Borders({ matrix: { borders } }: { readonly matrix: HeatJson }) {
  const last = borders.length - 1;
  return (
    <div class="heat-keys" aria-hidden="true">
      {Array.from({ length: LABELS }, (_, at) => {
        const border = borders[Math.round((at * last) / (LABELS - 1))] ?? '';
        const text = visibleText(at === LABELS - 1 ? endText(border) : startText(border));
        return (
          <span key={at} title={text}>
            {text}
          </span>
        );
      })}
    </div>
  );
}

function Outline({ matrix, cell }: { readonly matrix: HeatJson; readonly cell: Cell }) {
  const line = matrix.times.indexOf(cell.time);
  const column = matrix.borders.indexOf(cell.from);
  if (line < 0 || column < 0) return null;
  const percent = (part: number, whole: number): string => `${(100 * part) / Math.max(1, whole)}%`;
  const { times } = matrix;
  const columns = columnsOf(matrix);
  const place = { left: percent(line, times.length), top: percent(column, columns) };
  const size = { width: percent(1, times.length), height: percent(1, columns) };
  return <div class="heat-outline" style={{ ...place, ...size }} />;
}

/** What the colours mean. */
function Scale({ matrix }: { readonly matrix: HeatJson }) {
  return (
    <p class="heat-scale muted">
      none <i aria-hidden="true" /> {amountText(matrix, largest(matrix.values))}
    </p>
  );
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
