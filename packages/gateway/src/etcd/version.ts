/** The version of etcd's API that is served; clients choose features by it. */
export const ETCD_VERSION = '3.6.0';
