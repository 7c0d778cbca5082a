/** What the page of `remora/admin` describes: its exports without the messages of the protobuf files. */
export {
  AdminClient,
  type AdminClientOptions,
  type AuthChangeRequest,
  type AuthClient,
  type AuthQuestion,
  type RangeChangeRequest,
  type SeenRange,
} from '../../packages/client/src/admin.ts';
