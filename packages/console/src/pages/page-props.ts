import type { Query } from '../logic/location.ts';

export interface PageProps {
  readonly query: Query;
}
