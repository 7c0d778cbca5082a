import { type LockNotice, type LockResult, type Owner, ownerId, type PublicOwner } from '../src/index.ts';

/** What an outcome says apart from texts and times for display. */
export type Gist = string;

export function name({ session, token }: Owner): string {
  return `${session.lease}/${token}`;
}

/** The same of an owner and of what is shown of it. */
export function shownName(owner: Owner | PublicOwner): string {
  return `${owner.session.lease}/${'id' in owner ? owner.id : ownerId(owner.token)}`;
}

export function byOwner(a: { readonly owner: Owner }, b: { readonly owner: Owner }): number {
  return name(a.owner) < name(b.owner) ? -1 : 1;
}

export function text(data: Uint8Array): string {
  return Buffer.from(data).toString();
}

export function gist(result: LockResult): Gist {
  switch (result.type) {
    case 'granted': {
      const { version, depth, keptData } = result;
      return `granted ${version} ${depth}${keptData === undefined ? '' : ` left ${text(keptData)}`}`;
    }
    case 'forgotten':
      return `forgotten ${result.any}`;
    case 'queued':
      return 'queued';
    case 'busy':
      return `busy ${shownName(result.holder.owner)}`;
    case 'released':
      return `released ${result.depth} ${result.version}`;
    case 'revoking':
      return `revoking ${result.version}`;
    case 'capacity':
      return `capacity ${result.permits} ${result.capacity}`;
    case 'canceled':
      return `canceled ${result.released}`;
    case 'refused':
      return result.code;
  }
}

export function noticeGist(notice: LockNotice): Gist {
  return `${name(notice.owner)} ${gist(notice.result)}`;
}
