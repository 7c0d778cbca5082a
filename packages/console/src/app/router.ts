import { addressOf, type Parameters, type Place, placeOf } from '../logic/location.ts';
import { Store } from '../logic/store.ts';

export const place = new Store<Place>(placeOf(location.pathname, location.search));

interface GoOptions {
  /** Replaces the present entry of the history: for what is typed. */
  readonly replace?: boolean;
}

export function go(page: string, parameters: Parameters = {}, { replace = false }: GoOptions = {}): void {
  open(addressOf(page, parameters), replace);
}

function open(address: string, replace: boolean): void {
  if (replace) history.replaceState(null, '', address);
  else if (address !== `${location.pathname}${location.search}`) history.pushState(null, '', address);
  const before = place.get().page;
  place.set(placeOf(location.pathname, location.search));
  if (!replace && place.get().page !== before) scrollTo(0, 0);
}

/** Makes links within the console change the page without loading it again. */
export function startRouting(): void {
  addEventListener('popstate', () => place.set(placeOf(location.pathname, location.search)));
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.target !== '' || link.hasAttribute('download')) return;
    if (link.origin !== location.origin || !link.pathname.startsWith('/console/')) return;
    event.preventDefault();
    open(`${link.pathname}${link.search}`, false);
  });
}
