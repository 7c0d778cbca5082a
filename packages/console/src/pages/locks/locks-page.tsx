import { textOf } from '../../logic/location.ts';
import type { PageProps } from '../page-props.ts';
import { LockList } from './lock-list.tsx';
import { LockPage } from './lock-page.tsx';

export function LocksPage({ query }: PageProps) {
  const name = query.get('name');
  const namespace = textOf(query, 'namespace') || 'default';
  return name === undefined ? (
    <LockList query={query} namespace={namespace} />
  ) : (
    <LockPage lock={{ namespace, name }} />
  );
}
