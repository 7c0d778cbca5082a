/** The figures as tables of Markdown, as docs/benchmarks.md has them. */
import type { HourReport } from './browser/hour.ts';
import type { Visit } from './browser/visit.ts';

export function visitTable(visits: readonly Visit[]): string {
  return table(
    [
      ...['page', 'first paint', 'loaded', 'layout shift', 'longest frame', '95 % of frames', 'longest task'],
      ...['heap', 'elements'],
    ],
    visits.map((visit) => [
      visit.page,
      ms(visit.firstPaintMs),
      ms(visit.loadedMs),
      visit.layoutShift.toFixed(3),
      ms(visit.frameMsMax),
      ms(visit.frameMsP95),
      ms(visit.taskMsMax),
      mb(visit.heapBytes),
      String(visit.elements),
    ]),
  );
}

export function hourTable(hours: readonly HourReport[]): string {
  return table(
    ['page', 'events', 'heap before', 'heap after an hour', 'memory of the tab'],
    hours.map(({ page, events, heapBefore, heapAfter, tabBytes }) => [
      ...[page, String(events), mb(heapBefore), mb(heapAfter), mb(tabBytes)],
    ]),
  );
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

function ms(value: number): string {
  return `${value.toFixed(0)} ms`;
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
