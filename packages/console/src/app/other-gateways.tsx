import { gateways } from './gateways.ts';
import { useStore } from './hooks.ts';

/** Links to this page on the other gateways, as far as they are known. */
export function OtherGateways() {
  const others = useStore(gateways).filter(({ isThis }) => !isThis);
  if (others.length === 0) return null;
  return (
    <p class="other-gateways">
      Open this page on another gateway:{' '}
      {others.map(({ name, url }) => (
        <a key={url} href={`${url}${location.pathname}${location.search}`}>
          {name}
        </a>
      ))}
    </p>
  );
}
