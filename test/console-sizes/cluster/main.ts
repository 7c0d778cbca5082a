import { setMaxListeners } from 'node:events';
import { type ClusterSpec, serveCluster } from './cluster-main.ts';

// While replicas are spread, hundreds of snapshots are sent at a time.
setMaxListeners(0);
// The program that asked for the cluster is gone: nobody else would end it.
process.once('disconnect', () => process.exit(1));
await serveCluster(JSON.parse(process.argv[2] ?? '') as ClusterSpec);
