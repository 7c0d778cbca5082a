/** Places in the order of all keys, as the HTTP API writes them: `key:orders/42`, `lock:orders/42`. */

/** What is typed: a place in one of these forms, or else a plain key. */
export function routingKey(typed: string): string {
  if (typed === '-' || /^((key|lease|raw|lock):|lock@[^:]*:)/.test(typed)) return typed;
  return `key:${typed.replaceAll('\\', '\\\\')}`;
}
