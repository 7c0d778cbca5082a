/**
 * Runs `work` on each item, so many at a time; ends with the first error, whatever is still under way then. Nothing is begun
 * behind that: whoever undoes what was begun knows all of it.
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
