import { answersAsEtcdDoes } from './same-answers.ts';

answersAsEtcdDoes([
  { profile: 'mixed', seed: 2, requests: 250 },
  { profile: 'kv', seed: 4, requests: 200 },
]);
