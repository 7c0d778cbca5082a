import { useEffect, useState } from 'preact/hooks';
import { access } from '../api/access.ts';
import { cluster } from '../api/cluster.ts';
import { ApiError } from '../api/errors.ts';
import { rememberGateways } from './gateways.ts';
import { useResource, useStore } from './hooks.ts';

/** Nodes join and leave seldom. */
const EVERY_MS = 60_000;

/** Reads the gateways on every page, as long as this one answers. Users who may not read the cluster get none. */
export function useGateways(): void {
  const { state } = useStore(access);
  const [isDenied, setDenied] = useState(false);
  const { data, error } = useResource(state === 'in' && !isDenied ? 'gateways' : undefined, cluster, {
    everyMs: EVERY_MS,
  });
  useEffect(() => {
    if (data !== undefined) rememberGateways(data);
  }, [data]);
  useEffect(() => {
    if (error instanceof ApiError && error.code === 'PERMISSION_DENIED') setDenied(true);
  }, [error]);
}
