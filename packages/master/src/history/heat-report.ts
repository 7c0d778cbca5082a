import { givenBorder, type Heat, type HeatColumns, heatOfSpans, MEASURES, NO_HEAT } from '@remora/protocol';

/** The load that a node reported, whatever order and length its borders have. */
export function heatOfReport(columns: HeatColumns | undefined): Heat {
  if (columns === undefined) return NO_HEAT;
  const { borders, values } = columns;
  return heatOfSpans(
    borders.map((border, i) => {
      const next = borders[i + 1];
      return {
        start: givenBorder(border),
        end: next === undefined ? '' : givenBorder(next),
        values: values.slice(i * MEASURES, (i + 1) * MEASURES),
      };
    }),
  );
}
