import { textOf } from '../../logic/location.ts';
import type { PageProps } from '../page-props.ts';
import { SessionList } from './session-list.tsx';
import { SessionPage } from './session-page.tsx';

export function SessionsPage({ query }: PageProps) {
  const id = textOf(query, 'session');
  return id === '' ? <SessionList query={query} /> : <SessionPage id={id} />;
}
