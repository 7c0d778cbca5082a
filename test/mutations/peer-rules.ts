/**
 * The identity of callers, their permissions, and what they may occupy before their first message: each rule broken,
 * and its test.
 */
import type { RuleMutation } from './mutation.ts';

const STRANGERS = 'packages/protocol/src/rpc/node/strangers.test.ts';
const IDENTITIES = 'packages/cli/src/node/cluster/peer-identities.test.ts';
const BUDGET = 'packages/base/src/node/frames/input-budget.test.ts';
const OUTPUT = 'packages/base/src/node/frames/output-budget.test.ts';
const PIPE_OUTPUT = 'packages/gateway/src/pipe/node/pipe-output.test.ts';
const MASTER = 'packages/master/src/master.test.ts';
const ROOM = 'packages/protocol/src/rpc/node/stranger-room.test.ts';

export const PEER_RULES: readonly RuleMutation[] = [
  {
    name: 'joiners-call-as-nodes',
    rule: 'a caller whom the masters have not named may join and view, and nothing else (access.ts A2)',
    file: 'packages/protocol/src/rpc/access.ts',
    find: "return callers === 'joiners';",
    replace: "return callers !== 'clients';",
    killedBy: { file: STRANGERS, test: 'may join and view, and nothing else' },
  },
  {
    name: 'answer-with-the-incarnation',
    rule: 'an incarnation leaves a node only in the hellos by which it calls others (socket-rpc.ts G3)',
    file: 'packages/protocol/src/rpc/node/socket-rpc.ts',
    find: 'const digest = incarnationDigest(incarnation);',
    replace: 'const digest = incarnation;',
    killedBy: {
      file: STRANGERS,
      test: 'a caller that names the cluster hears a digest of the incarnation in its answer',
    },
  },
  {
    name: 'strangers-name-addresses',
    rule: 'only verified nodes are believed about their address (peer-addresses.ts PA3)',
    file: 'packages/cli/src/node/cluster/peer-identities.ts',
    find: 'nodeId === this.#deps.self.nodeId || this.#digestOf(nodeId) !== digest',
    replace: 'nodeId === this.#deps.self.nodeId',
    killedBy: {
      file: IDENTITIES,
      test: 'only a node whose incarnation is known is believed about its address (PA3)',
    },
  },
  {
    name: 'others-name-founders',
    rule: 'nobody else chooses the address of a founder that the masters have not named (peer-addresses.ts PA3)',
    file: 'packages/cli/src/node/cluster/peer-addresses.ts',
    find: 'if (written === undefined || this.#deps.registered(nodeId) === undefined) return;',
    replace: 'if (written === undefined) return;',
    killedBy: {
      file: 'packages/cli/src/node/cluster/peer-addresses.test.ts',
      test: 'of a node that the masters have not named is not what another node says (PA3)',
    },
  },
  {
    name: 'one-address-for-ever',
    rule: 'each failed attempt makes the next address the current one (peer-addresses.ts PA2)',
    file: 'packages/cli/src/node/cluster/peer-addresses.ts',
    find: 'if (following !== undefined) this.#current',
    replace: 'if (following === undefined) this.#current',
    killedBy: {
      file: 'packages/cli/src/node/cluster/peer-addresses.test.ts',
      test: 'changes with each failed attempt, and all of them have their turn (PA2)',
    },
  },
  {
    name: 'another-founding-list',
    rule: 'until the masters have named a founder, its options must make the stored id (data-dir.ts I6)',
    file: 'packages/cli/src/node/files/data-dir.ts',
    find: 'if (taken || founders === undefined ||',
    replace: 'if (founders !== undefined ||',
    killedBy: {
      file: 'packages/cli/src/node/files/data-dir.test.ts',
      test: "a directory is refused to a node with 'other founders, before the cluster is…' (I1, I6)",
    },
  },
  {
    name: 'founders-compared-for-ever',
    rule: 'once the masters have named a founder, its options are not compared any more (data-dir.ts I6)',
    file: 'packages/cli/src/node/files/data-dir.ts',
    find: 'if (taken || founders === undefined ||',
    replace: 'if (founders === undefined ||',
    killedBy: {
      file: 'packages/cli/src/node/files/data-dir.test.ts',
      test: 'once the masters have named a founder, its options may name other addresses, or none (I6)',
    },
  },
  {
    name: 'a-second-cluster-beside-the-first',
    rule: 'a member that refuses a node that was never named ends it (peer-refusal-policy.ts ST3)',
    file: 'packages/cli/src/node/cluster/peer-refusal-policy.ts',
    find: "return code !== 'UNAUTHENTICATED' || !this.#met;",
    replace: "return code === 'NODE_CONFLICT' || !this.#met;",
    killedBy: {
      file: 'packages/cli/src/node/cluster/peer-refusal-policy.test.ts',
      test: "'has met a member: only its certificat…'",
    },
  },
  {
    name: 'a-hello-is-believed',
    rule: 'a hello teaches nothing (peer-identities.ts PI3)',
    file: 'packages/cli/src/node/cluster/peer-identities.ts',
    find: 'if (digest === undefined) return this.#ask(nodeId, certificate);',
    replace: 'if (digest === undefined) this.#answered.set(nodeId, incarnationDigest(incarnation));',
    killedBy: {
      file: IDENTITIES,
      test: 'false hellos under the id of a founding member bar nobody, whoever comes first (PI3)',
    },
  },
  {
    name: 'any-address-makes-a-founder',
    rule: 'a founding member is known by what answers at its own address (peer-identities.ts PI2)',
    file: 'packages/cli/src/node/cluster/peer-identities.ts',
    find: 'if (wanted && this.#isUnnamedFounder(nodeId)',
    replace: 'if (this.#isUnnamedFounder(nodeId)',
    killedBy: {
      file: IDENTITIES,
      test: 'whoever answers where nobody in particular was looked for does not become a founding member (PI2)',
    },
  },
  {
    name: 'removed-nodes-are-nodes',
    rule: 'a node that the masters removed may join, and is told that it was removed (peer-identities.ts PI1)',
    file: 'packages/cli/src/node/cluster/peer-identities.ts',
    find: 'return peer === undefined || peer.removed ? undefined : peer.incarnation;',
    replace: 'return peer === undefined ? undefined : peer.incarnation;',
    killedBy: {
      file: IDENTITIES,
      test: 'a founding member that the masters removed is nobody, and is told so when it joins',
    },
  },
  {
    name: 'joins-under-any-id',
    rule: 'a caller registers only the id that it presented (master-service.ts SV2)',
    file: 'packages/master/src/master-service.ts',
    find: 'if (!presents(caller, nodeId)) {',
    replace: 'if (nodeId < 0) {',
    killedBy: {
      file: 'packages/master/src/master.test.ts',
      test: "registers a caller only under the id that it presented: 'nobody, for the id of a member' (SV2)",
    },
  },
  {
    name: 'strangers-register-as-founders',
    rule: 'only a verified founding member registers an id that was never given out (master-service.ts SV2)',
    file: 'packages/master/src/master-service.ts',
    find: "if (caller.kind === 'joiner' && nodeId < FIRST_ALLOCATED_NODE) {",
    replace: "if (caller.kind === 'joiner' && nodeId < 0) {",
    killedBy: {
      file: 'packages/master/src/master.test.ts',
      test: "registers a caller only under the id that it presented: 'one that is not verified' (SV2)",
    },
  },
  {
    name: 'removed-nodes-keep-their-links',
    rule: 'a link serves a caller as a node only as long as it is one (access.ts A4)',
    file: 'packages/protocol/src/rpc/server.ts',
    find: 'if (now.kind === this.#caller.kind) return true;',
    replace: "if (this.#caller.kind === 'node') return true;",
    killedBy: { file: STRANGERS, test: "a node that 'was removed' calls nothing more over the link that it has (A4)" },
  },
  {
    name: 'joiners-have-the-limits-of-nodes',
    rule: 'what a link holds for a caller that is not known is small (server.ts)',
    file: 'packages/protocol/src/rpc/server.ts',
    find: "this.#limits = options.caller.kind === 'joiner' ? joinerLimits(limits) : limits;",
    replace: 'this.#limits = limits;',
    killedBy: {
      file: 'packages/protocol/src/rpc/joiner-limits.test.ts',
      test: 'a joiner has few calls under way, until it is known as a node',
    },
  },
  {
    name: 'busy-connections-grow-old',
    rule: 'the connection is closed whose frame began first, not whose first frame did (input-budget.ts IB2)',
    file: 'packages/base/src/node/frames/input-budget.ts',
    find: 'if (bytes === 0 || isNewFrame) {',
    replace: 'if (bytes === 0) {',
    killedBy: { file: BUDGET, test: 'a frame that is whole counts no more, and the next one begins anew (IB2)' },
  },
  {
    name: 'frames-without-end',
    rule: 'a frame that has begun must be whole in a bounded time (input-budget.ts IB3)',
    file: 'packages/base/src/node/frames/input-budget.ts',
    find: 'if (account.begunMs > beforeMs) break;',
    replace: 'if (account.begunMs > 0) break;',
    killedBy: {
      file: BUDGET,
      test: 'closes a connection whose frame is not whole in time, and none whose frames come and go (IB3)',
    },
  },
  {
    name: 'strangers-fill-the-port-for-nodes',
    rule: 'strangers never keep a node out: the newest is taken, the quietest is closed (input-budget.ts IB6)',
    file: 'packages/base/src/node/frames/input-budget.ts',
    find: 'if (this.#strangers === undefined) {',
    replace: 'if (this.#strangers !== null) {',
    killedBy: { file: ROOM, test: 'a node connects while strangers hold all the room that they can have (IB6)' },
  },
  {
    name: 'the-oldest-makes-room',
    rule: 'the connection that has been quiet for longest makes room, not the oldest (crowd.ts CR1)',
    file: 'packages/base/src/node/frames/crowd.ts',
    find: 'if (!this.#members.has(member)) return;',
    replace: 'return;',
    killedBy: {
      file: ROOM,
      test: 'of anonymous links from one address the one goes that has called least lately (IB6)',
    },
  },
  {
    name: 'idle-strangers-stay',
    rule: 'a stranger that has said hello is closed when it makes no call for a while (input-budget.ts IB6)',
    file: 'packages/base/src/node/frames/input-budget.ts',
    find: 'this.#clock.monotonicMs() - strangers.idleMs;',
    replace: 'Number.NEGATIVE_INFINITY;',
    killedBy: {
      file: ROOM,
      test: 'an anonymous link is closed when it does not call for ten seconds; the link of a node is not (IB6)',
    },
  },
  {
    name: 'unread-output-has-no-budget',
    rule: 'what waits for all callers of a port who do not read is bounded (output-budget.ts OB1)',
    file: 'packages/protocol/src/rpc/node/frame-link.ts',
    find: 'holdsBack: (bytes) => stream.holdsBack(bytes),',
    replace: 'holdsBack: () => {},',
    killedBy: {
      file: PIPE_OUTPUT,
      test: 'a client with few answers keeps its connection beside one at the same address that takes none (OB2)',
    },
  },
  {
    name: 'the-smallest-is-closed',
    rule: 'of an address for which too much waits, the connection with the most is closed (output-budget.ts OB2)',
    file: 'packages/base/src/node/frames/output-budget.ts',
    find: 'if (account.bytes > (largest?.bytes ?? 0)) largest = account;',
    replace: 'largest ??= account;',
    killedBy: {
      file: OUTPUT,
      test: 'closes, when too much waits in all, a connection of the address for which the most waits (OB2)',
    },
  },
  {
    name: 'output-counts-after-it-left',
    rule: 'nothing is closed for what was counted before and has left since (output-budget.ts OB2)',
    file: 'packages/base/src/node/frames/output-budget.ts',
    find: 'if (to.bytes > bytesPerAddressMax) this.#recount(to);',
    replace: '',
    killedBy: { file: OUTPUT, test: 'closes nothing for what has left without a word (OB2)' },
  },
  {
    name: 'known-joins-are-proposed',
    rule: 'a node that joins as it is registered is answered without a proposal (master-service.ts SV4)',
    file: 'packages/master/src/master-service.ts',
    find: 'if (nodeId === undefined) this.#registerNode(descriptor, caller, done);',
    replace: 'if (nodeId !== 0) this.#registerNode(descriptor, caller, done);',
    killedBy: {
      file: MASTER,
      test: 'answers a node that joins as it is registered without a proposal, once it is known to lead (SV4)',
    },
  },
  {
    name: 'known-joins-by-a-deposed-leader',
    rule: 'a node is told that it is registered by a leader that is known to lead (master-service.ts SV4)',
    file: 'packages/master/src/master-service.ts',
    find: 'if (isNews) return this.#registerNode(descriptor, caller, done);',
    replace:
      'if (isNews) return this.#registerNode(descriptor, caller, done);\n' +
      'const known = this.#registered(descriptor);\n' +
      'if (known !== undefined) return done(undefined, { nodeId: known, clusterId });',
    killedBy: {
      file: MASTER,
      test: 'answers a node that joins as it is registered without a proposal, once it is known to lead (SV4)',
    },
  },
  {
    name: 'strangers-join-at-any-rate',
    rule: 'strangers have few registrations proposed per second (master-service.ts SV4)',
    file: 'packages/master/src/nodes/join-rate.ts',
    find: 'if (!this.#bucket.tryTake(nowMs)) {',
    replace: 'if (nowMs < 0) {',
    killedBy: {
      file: MASTER,
      test: 'proposes few registrations of strangers at a time and per second, and says when to ask again (SV4)',
    },
  },
  {
    name: 'strangers-join-all-at-once',
    rule: 'strangers have few registrations under way (master-service.ts SV4)',
    file: 'packages/master/src/nodes/join-rate.ts',
    find: 'if (this.#underWay >= STRANGERS_JOINING_MAX) {',
    replace: 'if (this.#underWay < 0) {',
    killedBy: {
      file: MASTER,
      test: 'proposes few registrations of strangers at a time and per second, and says when to ask again (SV4)',
    },
  },
  {
    name: 'own-unready-is-cut',
    rule: 'each node is told what makes it unready, however much else is wrong (cluster-health.ts)',
    file: 'packages/master/src/admin/cluster-health.ts',
    find: 'makesUnready(condition) === undefined ? 2 : condition.nodeId === nodeId ? 0 : 1;',
    replace: 'makesUnready(condition) === undefined ? 2 : 1;',
    killedBy: {
      file: 'packages/master/src/admin/cluster-health.test.ts',
      test: 'each node is told what makes it unready, also when that is true of more nodes than are listed',
    },
  },
  {
    name: 'unlisted-nodes-serve',
    rule: 'no other node counts as serving when more are unready than the masters could list (health.ts NH2)',
    file: 'packages/cli/src/node/health.ts',
    find: 'if (this.#masters().length > 0 || this.#unlistedMayBeUnready()) return false;',
    replace: 'if (this.#masters().length > 0) return false;',
    killedBy: {
      file: 'packages/cli/src/node/health.test.ts',
      test: "'full nodes are missing in the list'",
    },
  },
];
