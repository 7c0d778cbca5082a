import type { Command } from '@remora/protocol';

/** A command that takes plain keys and locks from a lease when the lease ends. */
export type LeaseEndingCommand = Extract<Command, { readonly type: 'leaseRevoke' | 'leaseExpire' | 'leaseEnd' }>;

export function endsLease(command: Command): command is LeaseEndingCommand {
  return command.type === 'leaseRevoke' || command.type === 'leaseExpire' || command.type === 'leaseEnd';
}
