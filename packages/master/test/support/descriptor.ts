import type { NodeDescriptor } from '@remora/protocol';

export const CONF = { voters: [1, 2, 3], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };

export function descriptor(nodeId: number, more: Partial<NodeDescriptor> = {}): NodeDescriptor {
  return {
    nodeId,
    name: `n${nodeId}`,
    incarnation: `dir${nodeId}`,
    roles: ['master', 'data', 'gateway'],
    peerAddress: `h${nodeId}:1`,
    clientAddress: `h${nodeId}:2`,
    httpAddress: `h${nodeId}:3`,
    version: '0.1.0',
    ...more,
  };
}
