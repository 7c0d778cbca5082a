/**
 * Runs `work` on each item, at most `atATime` at once. Rejects with the first error, while other work may still run; no
 * work starts after that, so the caller knows all that it may have to undo.
 */
export async function eachOf<Item>(
  items: readonly Item[],
  atATime: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    try {
      while (next < items.length) {
        const item = items[next++];
        if (item !== undefined) await work(item);
      }
    } catch (error) {
      next = items.length;
      throw error;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atATime, items.length) }, worker));
}
