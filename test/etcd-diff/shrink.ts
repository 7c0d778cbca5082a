/**
 * The shortest part of a list that still fails: halves, quarters and so on are left out as long as it fails without
 * them (Zeller, "Simplifying and isolating failure-inducing input", in the form that only leaves out).
 */
export interface ShrinkOptions<T> {
  /** Tries at most. */
  readonly triesMax: number;
  /** Elements that may take the place of one. */
  readonly smaller?: (element: T) => Iterable<T>;
}

export async function shrink<T>(
  list: readonly T[],
  fails: (part: readonly T[]) => Promise<boolean>,
  { triesMax, smaller = () => [] }: ShrinkOptions<T>,
): Promise<readonly T[]> {
  let left = list;
  let tries = 0;
  const take = async (part: readonly T[]): Promise<boolean> => {
    if (tries >= triesMax) return false;
    tries++;
    if (!(await fails(part))) return false;
    left = part;
    return true;
  };
  for (let size = Math.ceil(left.length / 2); size >= 1 && tries < triesMax; ) {
    let hasShrunk = false;
    for (let from = 0; from < left.length; ) {
      if (await take(left.toSpliced(from, size))) hasShrunk = true;
      else from += size;
    }
    if (size > 1) size = Math.ceil(size / 2);
    else if (!hasShrunk) break;
  }
  for (let i = 0; i < left.length && tries < triesMax; ) {
    if (
      !(await takeFirst(
        [...smaller(left[i] as T)].map((element) => left.with(i, element)),
        take,
      ))
    )
      i++;
  }
  return left;
}

async function takeFirst<T>(lists: readonly T[], take: (list: T) => Promise<boolean>): Promise<boolean> {
  for (const list of lists) if (await take(list)) return true;
  return false;
}
