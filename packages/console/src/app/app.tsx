import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { access, readAccess } from '../api/access.ts';
import { Page } from '../kit/page.tsx';
import { Empty, ErrorNote, Loading } from '../kit/states.tsx';
import { addressOf } from '../logic/location.ts';
import type { PageProps } from '../pages/page-props.ts';
import { PAGES } from '../pages/registry.ts';
import { Frame } from './frame.tsx';
import { Help } from './help.tsx';
import { useResource, useStore } from './hooks.ts';
import { LogIn } from './log-in.tsx';
import { place } from './router.ts';
import { startShortcuts } from './shortcuts.ts';

export function App() {
  const [hasHelp, setHelp] = useState(false);
  const present = useStore(access);
  const start = useResource('access', () => readAccess());
  useEffect(() => startShortcuts(() => setHelp(true)), []);

  if (present.state === 'loggedOut') return <LogIn hasEnded={present.hasEnded} />;
  return (
    <Frame showHelp={() => setHelp(true)}>
      {start.error !== undefined && present.state === 'unknown' && (
        <ErrorNote error={start.error} retry={start.reload} />
      )}
      {present.state === 'in' && <CurrentPage />}
      {hasHelp && <Help close={() => setHelp(false)} />}
    </Frame>
  );
}

/** The code of a page is loaded when the page is opened first. */
function CurrentPage() {
  const { page, query } = useStore(place);
  const entry = PAGES.find(({ path }) => path === page);
  const [shown, setShown] = useState<{ readonly page: string; readonly View: ComponentType<PageProps> }>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let isCurrent = true;
    setError(undefined);
    entry?.load().then(
      (View) => isCurrent && setShown({ page, View }),
      (cause: unknown) => isCurrent && setError(cause),
    );
    return () => {
      isCurrent = false;
    };
  }, [page, entry]);

  if (entry === undefined) return <NoPage />;
  if (error !== undefined) return <ErrorNote error={error} retry={() => location.reload()} />;
  if (shown === undefined || shown.page !== page) return <Loading />;
  return <shown.View query={query} />;
}

function NoPage() {
  return (
    <Page title="No such page">
      <Empty title="There is no page at this address.">
        <a href={addressOf('')}>Go to the overview</a>
      </Empty>
    </Page>
  );
}
