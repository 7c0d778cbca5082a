/** Line-by-line differences of two texts (Myers, "An O(ND) Difference Algorithm", 1986). */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
  /** Line numbers from 1; absent on the side that lacks the line. */
  readonly before?: number;
  readonly after?: number;
}

/** Above so many edits the rest counts as replaced as a whole, which bounds time and memory. */
const EDITS_MAX = 600;

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [left, right] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let end = 0;
  const isSameAtEnd = (): boolean => left[left.length - 1 - end] === right[right.length - 1 - end];
  while (end < left.length - start && end < right.length - start && isSameAtEnd()) end++;
  const middle = edits(left.slice(start, left.length - end), right.slice(start, right.length - end));
  const kinds = [...repeat('same', start), ...middle, ...repeat('same', end)];
  return numbered(kinds, left, right);
}

type Kind = DiffLine['kind'];

function repeat(kind: Kind, times: number): readonly Kind[] {
  return new Array<Kind>(times).fill(kind);
}

function edits(left: readonly string[], right: readonly string[]): readonly Kind[] {
  if (left.length === 0) return repeat('added', right.length);
  if (right.length === 0) return repeat('removed', left.length);
  const trace: Map<number, number>[] = [];
  const furthest = new Map<number, number>([[1, 0]]);
  const most = Math.min(left.length + right.length, EDITS_MAX);
  for (let distance = 0; distance <= most; distance++) {
    trace.push(new Map(furthest));
    for (let k = -distance; k <= distance; k += 2) {
      let x = stepsDown(furthest, k, distance) ? (furthest.get(k + 1) ?? 0) : (furthest.get(k - 1) ?? 0) + 1;
      while (x < left.length && x - k < right.length && left[x] === right[x - k]) x++;
      furthest.set(k, x);
      if (x >= left.length && x - k >= right.length) return walkBack(trace, left.length, right.length);
    }
  }
  return [...repeat('removed', left.length), ...repeat('added', right.length)];
}

function stepsDown(furthest: ReadonlyMap<number, number>, k: number, distance: number): boolean {
  return k === -distance || (k !== distance && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
}

function walkBack(trace: readonly Map<number, number>[], width: number, height: number): readonly Kind[] {
  const kinds: Kind[] = [];
  let [x, y] = [width, height];
  for (let distance = trace.length - 1; distance >= 0; distance--) {
    const furthest = trace[distance] as Map<number, number>;
    const k = x - y;
    const isDown = stepsDown(furthest, k, distance);
    const fromX = furthest.get(isDown ? k + 1 : k - 1) ?? 0;
    const fromY = fromX - (isDown ? k + 1 : k - 1);
    while (x > fromX && y > fromY && x > 0 && y > 0) {
      kinds.push('same');
      x--;
      y--;
    }
    if (distance > 0) kinds.push(isDown ? 'added' : 'removed');
    [x, y] = [fromX, fromY];
  }
  return kinds.reverse();
}

function numbered(kinds: readonly Kind[], left: readonly string[], right: readonly string[]): readonly DiffLine[] {
  let [before, after] = [0, 0];
  return kinds.map((kind) => {
    if (kind === 'removed') return { kind, text: left[before++] ?? '', before };
    if (kind === 'added') return { kind, text: right[after++] ?? '', after };
    before++;
    return { kind, text: right[after++] ?? '', before, after };
  });
}

/** Unchanged lines further than `context` from a change become gaps. */
export function withGaps(
  lines: readonly DiffLine[],
  context = 3,
): readonly (DiffLine | { readonly skipped: number })[] {
  const isNear = new Array<boolean>(lines.length).fill(false);
  lines.forEach((line, at) => {
    if (line.kind === 'same') return;
    for (let near = Math.max(0, at - context); near <= Math.min(lines.length - 1, at + context); near++) {
      isNear[near] = true;
    }
  });
  const shown: (DiffLine | { readonly skipped: number })[] = [];
  let skipped = 0;
  lines.forEach((line, at) => {
    if (!isNear[at]) {
      skipped++;
      return;
    }
    if (skipped > 0) shown.push({ skipped });
    skipped = 0;
    shown.push(line);
  });
  return skipped > 0 ? [...shown, { skipped }] : shown;
}
