import { answersAsEtcdDoes } from './same-answers.ts';

answersAsEtcdDoes([
  { profile: 'mixed', seed: 1, requests: 250 },
  { profile: 'txn', seed: 3, requests: 200 },
]);
