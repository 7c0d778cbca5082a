import { describe, expect, test } from 'vitest';
import { windowOf } from '../src/logic/window.ts';

describe('the window of a long list', () => {
  const list = { rows: 100_000, rowHeight: 36, height: 720 };

  test.each([0, 1, 35, 36, 5_000, 1_799_977, 3_599_280, 9_999_999])(
    'at %d pixels, the rows in sight are drawn, few others, and the height stays',
    (scrollTop) => {
      const { from, to, above, below } = windowOf({ ...list, scrollTop });
      const last = list.rows * list.rowHeight - list.height;
      const top = Math.min(scrollTop, last);
      expect(from * list.rowHeight).toBeLessThanOrEqual(top);
      expect(to * list.rowHeight).toBeGreaterThanOrEqual(top + list.height);
      expect(to - from).toBeLessThan(60);
      expect(above + below + (to - from) * list.rowHeight).toBe(list.rows * list.rowHeight);
    },
  );

  test('a short list is drawn as a whole', () => {
    expect(windowOf({ rows: 3, rowHeight: 36, scrollTop: 0, height: 720 })).toEqual({
      ...{ from: 0, to: 3, above: 0, below: 0 },
    });
  });
});
