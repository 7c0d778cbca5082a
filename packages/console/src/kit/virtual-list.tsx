import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { windowOf } from '../logic/window.ts';
import { Scroll } from './scroll.tsx';

interface VirtualListProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  keyOf(row: Row): string | number;
  draw(row: Row): ComponentChildren;
  readonly rowHeight?: number;
}

/** Lines of one height that scroll in themselves; only those in sight are in the document. */
export function VirtualList<Row>({ label, rows, keyOf, draw, rowHeight = 30 }: VirtualListProps<Row>) {
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ scrollTop: 0, height: 600 });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setView({ scrollTop: element.scrollTop, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const shown = windowOf({ rows: rows.length, rowHeight, ...view });
  return (
    <Scroll
      box={box}
      class="virtual-list"
      label={label}
      scrolled={({ scrollTop, clientHeight }) => setView({ scrollTop, height: clientHeight })}
    >
      <div style={{ height: `${shown.above}px` }} />
      {rows.slice(shown.from, shown.to).map((row) => (
        <div key={keyOf(row)} class="virtual-row" style={{ height: `${rowHeight}px` }}>
          {draw(row)}
        </div>
      ))}
      <div style={{ height: `${shown.below}px` }} />
    </Scroll>
  );
}
