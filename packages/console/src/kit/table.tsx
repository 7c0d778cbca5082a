import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { windowOf } from '../logic/window.ts';
import { Scroll } from './scroll.tsx';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers are aligned to the right. */
  readonly isNumber?: boolean;
  /** Left out where the screen is narrow. */
  readonly isMinor?: boolean;
  /** A share of the width, as `w-20`: one of the classes in table.css. */
  readonly width?: string;
}

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  keyOf(row: Row): string | number;
  /** Where a click on the row leads; the first cell should have the link, for keyboards. */
  readonly tone?: (row: Row) => 'bad' | 'warn' | undefined;
  /** Called when the last rows come near. */
  readonly atEnd?: (() => void) | undefined;
  readonly empty?: ComponentChildren;
}

const ROW_HEIGHT = 36;
/** More rows are read before the last ones come into sight. */
const AHEAD_ROWS = 30;
/** Lists up to this length are drawn as a whole, and grow with the page. */
const WHOLE_MAX = 60;

/** A table. Long ones scroll in themselves, and only rows in sight are in the document. */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, keyOf, tone, atEnd, empty } = props;
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ scrollTop: 0, height: 600 });
  const isLong = rows.length > WHOLE_MAX;
  const shown = isLong
    ? windowOf({ rows: rows.length, rowHeight: ROW_HEIGHT, ...view })
    : { from: 0, to: rows.length, above: 0, below: 0 };

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || !isLong) return;
    const measure = (): void => setView({ scrollTop: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [isLong]);

  const isAtEnd = shown.to + AHEAD_ROWS >= rows.length;
  useEffect(() => {
    if (isAtEnd && rows.length > 0) atEnd?.();
  }, [isAtEnd, rows.length, atEnd]);

  if (rows.length === 0 && empty !== undefined) return <>{empty}</>;
  return (
    <Scroll
      box={box}
      class={isLong ? 'table-box table-long' : 'table-box'}
      label={label}
      scrolled={({ scrollTop, clientHeight }) => {
        if (isLong) setView({ scrollTop, height: clientHeight });
      }}
    >
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer height={shown.above} />
          {rows.slice(shown.from, shown.to).map((row, at) => (
            <tr key={keyOf(row)} class={rowClass(tone?.(row))} aria-rowindex={shown.from + at + 2}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          <Spacer height={shown.below} />
        </tbody>
      </table>
    </Scroll>
  );
}

function Spacer({ height }: { readonly height: number }) {
  return height === 0 ? null : (
    <tr class="spacer">
      <td style={{ height: `${height}px` }} />
    </tr>
  );
}

function classOf<Row>({ isNumber, isMinor, width }: Column<Row>): string {
  return [isNumber ? 'number' : '', isMinor ? 'minor' : '', width ?? ''].join(' ').trim();
}

function rowClass(tone: 'bad' | 'warn' | undefined): string {
  return tone === undefined ? '' : `row-${tone}`;
}
