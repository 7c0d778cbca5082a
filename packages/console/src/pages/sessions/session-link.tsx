import { addressOf } from '../../logic/location.ts';

export function sessionAddress(id: string): string {
  return addressOf('sessions', { session: id });
}

export function SessionLink({ id }: { readonly id: string }) {
  return (
    <a class="mono" href={sessionAddress(id)}>
      {id}
    </a>
  );
}
