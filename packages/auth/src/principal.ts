export type { Principal } from '@remora/protocol';
