/**
 * What clients conclude from the cluster's answers, and what they owe the cluster: each rule broken, and the test that
 * notices.
 */
import type { RuleMutation } from './mutation.ts';

export const CLIENT_RULES: readonly RuleMutation[] = [
  {
    name: 'lasting-lease-given-up',
    rule: 'a lease without expiry is asked for until the cluster has answered (lease-endings.ts E1)',
    file: 'packages/client/src/session/lease-endings.ts',
    find: 'last = signal.aborted;',
    replace: 'last = pauseMs > 0;',
    killedBy: {
      file: 'test/sdk/dedicated-lease.test.ts',
      test: 'is released in the background when an outage was longer than anybody waits',
    },
  },
  {
    name: 'lasting-lease-forgotten-by-the-journal',
    rule: 'the journal names a lease without expiry until the cluster has answered (lease-endings.ts E1)',
    file: 'packages/client/src/session/lease-endings.ts',
    find: 'if (await this.#revoke(ref)) return this.#journal?.remove(ref.lease);',
    replace: 'this.#journal?.remove(ref.lease);\n      if (await this.#revoke(ref)) return;',
    killedBy: {
      file: 'test/sdk/journal.test.ts',
      test: 'keeps what no time ends until the cluster has said that it has ended, be it lost or released',
    },
  },
  {
    name: 'lasting-lease-left-at-close',
    rule: 'closing a client asks for its leases without expiry once more (lease-endings.ts E2)',
    file: 'packages/client/src/session/lease-endings.ts',
    find: 'last = signal.aborted;',
    replace: 'if (signal.aborted) return;',
    killedBy: {
      file: 'test/sdk/dedicated-lease.test.ts',
      test: 'is released by closing the client, which asks once more, and no further when that fails',
    },
  },
  {
    name: 'terms-of-the-next-session',
    rule: 'of a holder whose session has ended no terms are shown',
    file: 'packages/client/src/lock/lock-details.ts',
    find: 'if (info?.id !== lease || info.incarnation !== incarnation) return undefined;',
    replace: 'if (info === undefined) return undefined;',
    killedBy: {
      file: 'test/sdk/dedicated-lease.test.ts',
      test: 'what each holder has agreed on, and how long it would have the lock, is told of a lock',
    },
  },
  {
    name: 'lease-counted-from-the-answer',
    rule: 'a client counts its lease from when the answer came, not from when that heartbeat was sent',
    file: 'packages/client/src/session/session-validity.ts',
    find: 'this.#ackedMs = sentMs;\n    this.#ackedWallMs',
    replace: 'this.#ackedMs = this.#clock.monotonicMs();\n    this.#ackedWallMs',
    killedBy: {
      file: 'packages/client/src/session/session.test.ts',
      test: 'an acknowledgement counts from when its heartbeat was sent, however late it comes',
    },
  },
  {
    name: 'longer-ttl-counted-before-a-heartbeat',
    rule: 'a client counts on a longer TTL before a heartbeat was acknowledged with it',
    file: 'packages/client/src/session/session-validity.ts',
    find: 'Math.min(this.#validityMs, aliveMs(pace, pace.ttlMs))',
    replace: 'aliveMs(pace, pace.ttlMs)',
    killedBy: {
      file: 'test/sdk/dedicated-lease.test.ts',
      test: 'that is made longer counts from the first heartbeat that was answered with it (S5)',
    },
  },
  {
    name: 'acknowledged-ttl-ignored',
    rule: 'a heartbeat counts for the TTL that was agreed on, whatever its acknowledgement names',
    file: 'packages/client/src/session/session-pace.ts',
    find: 'validityMs(Math.min(pace.ttlMs, ttlMs))',
    replace: 'validityMs(Math.max(pace.ttlMs, ttlMs))',
    killedBy: {
      file: 'packages/client/src/session/session.test.ts',
      test: 'an acknowledgement counts for the TTL that it names, if that is shorter than the one that was agreed on (S4)',
    },
  },
  {
    name: 'shorter-ttl-counted-when-answered',
    rule: 'a client counts on the longer TTL until it has heard that a shorter one is in force',
    file: 'packages/client/src/session/session.ts',
    find: '    this.#keepTo(shorter);\n',
    replace: '    void shorter;\n',
    killedBy: {
      file: 'test/sdk/dedicated-lease.test.ts',
      test: 'that is made shorter counts from then on, though nobody knows whether the cluster has heard of it (S5)',
    },
  },
  {
    name: 'background-beat-counted-from-now',
    rule: 'a heartbeat that the background renewer sent counts from when the client hears of it',
    file: 'packages/client/src/session/heartbeats.ts',
    find: 'this.#count(beat, beat.ttlMs)',
    replace: 'this.#count({ sentMs: this.#clock.monotonicMs(), sentWallMs: this.#clock.wallMs() }, beat.ttlMs)',
    killedBy: {
      file: 'test/sdk/background-renewer.property.test.ts',
      test: 'never takes for its own what the cluster has given away, whoever was cut off meanwhile',
    },
  },
  {
    name: 'background-renewer-without-end',
    rule: 'the background renewer renews what a client holds that hangs for good',
    file: 'packages/client/src/session/background-renewer.ts',
    find: 'nowMs - this.#aliveMs > this.#options.blockMaxMs',
    replace: 'nowMs < this.#aliveMs',
    killedBy: {
      file: 'test/sdk/background-renewer.property.test.ts',
      test: 'that hangs for good holds up others for so long as it may be busy and a TTL, and knows it is lost',
    },
  },
  {
    name: 'lease-asked-for-before-it-is-named',
    rule: 'a session is asked for before the journal names it durably',
    file: 'packages/client/src/session/session-start.ts',
    find: 'await journal.add(id);',
    replace: 'void journal.add(id);',
    killedBy: {
      file: 'test/sdk/journal.test.ts',
      test: 'names each lease durably before it asks for it, so that no crash leaves one that is not named',
    },
  },
  {
    name: 'sets-in-the-order-of-asking',
    rule: 'several locks are acquired in the order in which they are asked for',
    file: 'packages/client/src/lock/lock-choice.ts',
    find: 'compareIds(a.lock.id, b.lock.id));',
    replace: 'a.at - b.at);',
    killedBy: {
      file: 'test/sdk/lock-all.property.test.ts',
      test: 'sets of locks taken by many clients at once never wait for one another for ever, and leave nothing',
    },
  },
  {
    name: 'set-not-checked-once-it-is-granted',
    rule: 'several locks count as held although one was taken away while others were waited for',
    file: 'packages/client/src/lock/lock-set.ts',
    find: 'if (await inTime(all.check(), { clock, ms: leftMs || undefined, reason })) return;',
    replace: 'if (all.locks.length > 0) return;',
    killedBy: {
      file: 'test/sdk/lock-all.test.ts',
      test: 'are not held if one was taken away while others were waited for',
    },
  },
  {
    name: 'watch-goes-back-before-its-beginning',
    rule: 'a watch that begins at a revision to come never begins before it (watch.ts W1)',
    file: 'packages/client/src/kv/key-changes.ts',
    find: 'this.#nextRevision = Math.max(this.#nextRevision, message.revision + 1);',
    replace: 'this.#nextRevision = message.revision + 1;',
    killedBy: {
      file: 'packages/client/src/kv/watch.test.ts',
      test: 'a watch that begins at a revision to come never begins before it, whatever it is told meanwhile',
    },
  },
  {
    name: 'long-lease-left-to-its-ttl',
    rule: 'a lease whose end was not answered is asked for again, however long its TTL is (lease-endings.ts E1)',
    file: 'packages/client/src/session/session.ts',
    find: '        this.#deps.endings.add(this.ref); // Its TTL may be long, and others wait for its locks.\n',
    replace: '',
    killedBy: {
      file: 'test/sdk/letting-go.test.ts',
      test: "'the end of a session with a TTL of it…' arrives when it can, long before the TTL is over",
    },
  },
  {
    name: 'lost-lease-ended-after-the-client',
    rule: 'closing a client waits for the end of a lease that is lost here (lease-endings.ts E2)',
    file: 'packages/client/src/session/session.ts',
    find: "if (this.#endless || this.#ended === 'lost') {",
    replace:
      "if (this.#ended === 'lost') return void this.#revoke({ timeoutMs, untilAnswered: true }).catch(() => {});\n    if (this.#endless) {",
    killedBy: {
      file: 'test/sdk/letting-go.test.ts',
      test: 'a lease of a lock that is lost here is ended before its client is closed, who waits for that',
    },
  },
  {
    name: 'delayed-locks-released-after-the-word',
    rule: 'what gives a lock with a lock-delay back is on its way when its holder hears of the closing (session.ts S9)',
    file: 'packages/client/src/lock/lock-release.ts',
    find: '    this.#deps.requester.gateways.flush();\n',
    replace: '',
    killedBy: {
      file: 'test/sdk/exit.test.ts',
      test: 'so is what gives back the only lock, with a delay',
    },
  },
  {
    name: 'misspelt-fence',
    rule: 'a call refuses options that it does not take: a misspelt fence would be a write without one',
    file: 'packages/client/src/kv/kv.ts',
    find: '    checkOptions(PUT_OPTIONS, options);\n',
    replace: '',
    killedBy: {
      file: 'test/sdk/arguments.test.ts',
      test: 'put has no option fense; did you mean fence?',
    },
  },
  {
    name: 'an-idle-holder-ends',
    rule: 'sessions keep the process alive while no gateway is there, as their connection does',
    file: 'packages/client/src/session/client-sessions.ts',
    find: '    liveness.hold();\n    session.onLoss',
    replace: '    session.onLoss',
    killedBy: {
      file: 'test/sdk/misfortune.test.ts',
      test: 'the process lives as long as its sessions do, also while no gateway is there: who holds a lock may only wait',
    },
  },
  {
    name: 'found-gateways-unverified',
    rule: 'what is found is used only once it has answered here (discovery.ts DY1)',
    file: 'packages/client/src/transport/discovery.ts',
    find: '      const channel = gateways.channelTo(address',
    replace: '      gateways.found(address, cluster);\n      const channel = gateways.channelTo(address',
    killedBy: {
      file: 'test/sdk/discovery.test.ts',
      test: 'and that lead nowhere from here cost requests nothing, and are tried now and then only',
    },
  },
  {
    name: 'found-gateways-of-any-cluster',
    rule: 'what answers has to belong to the same cluster, at each new connection (discovery.ts DY2)',
    file: 'packages/client/src/transport/gateways.ts',
    find: 'cluster === undefined ? target : { ...target, cluster }',
    replace: 'target',
    killedBy: { file: 'test/sdk/discovery.test.ts', test: 'are not used where another cluster answers' },
  },
  {
    name: 'nobody-tried-in-trouble',
    rule: 'what is not found is tried when the present gateway is of no use (discovery.ts DY5)',
    file: 'packages/client/src/transport/discovery.ts',
    find: 'ports.gateways.onTrouble = () => this.#tryNow();',
    replace: '',
    killedBy: {
      file: 'test/sdk/discovery.test.ts',
      test: 'goes on at another gateway when that one is gone at once',
    },
  },
  {
    name: 'background-renewer-asks-one-gateway',
    rule: 'a background renewer asks the next gateway besides when one does not answer soon (background-renewer.ts SI4)',
    file: 'packages/client/src/session/background-renewer.ts',
    find: '      gateways.failed(channel, true);\n      this.#look(renewed);',
    replace: '      this.#look(renewed);',
    killedBy: {
      file: 'test/sdk/background-renewer.property.test.ts',
      test: 'holds its locks all the same while b:1 alone is of any use',
    },
  },
  {
    name: 'command-forgotten-by-the-journal',
    rule: 'nothing is given back while a command that a client named is left (journal.ts J6)',
    file: 'packages/client/src/session/journal.ts',
    find: 'const runs = file.command !== undefined && !isGone(file.command);',
    replace: 'const runs = false;',
    killedBy: {
      file: 'test/sdk/journal.test.ts',
      test: 'keeps what its client held after the process of that is gone, until it is gone too',
    },
  },
  {
    name: 'command-looked-for-once',
    rule: 'a command that outlives the process of its client is looked for until it is gone (journal.ts J6)',
    file: 'packages/client/src/session/journal.ts',
    find: 'if (commands > 0) pauseMs = COMMAND_PAUSE_MS;\n      else if',
    replace: 'if',
    killedBy: {
      file: 'test/sdk/journal.test.ts',
      test: 'keeps what its client held after the process of that is gone, until it is gone too',
    },
  },
  {
    name: 'command-of-a-reused-id',
    rule: 'a process that started at another time is not the command that had its id (command-processes.ts CP1)',
    file: 'packages/base/src/node/processes/command-processes.ts',
    find: 'if (start !== undefined && !isFirst) return []; // CP1',
    replace: '',
    killedBy: {
      file: 'packages/base/src/node/processes/command-processes.test.ts',
      test: 'are none when its id is that of a later process',
    },
  },
  {
    name: 'command-known-by-its-first-process',
    rule: 'all processes of the session belong to a command, in whatever group (command-processes.ts CP2)',
    file: 'packages/base/src/node/processes/command-processes.ts',
    find: '(session ?? group) === command.pid',
    replace: 'group === command.pid',
    killedBy: {
      file: 'packages/base/src/node/processes/command-processes.test.ts',
      test: 'are those of the session, in whatever group',
    },
  },
  {
    name: 'command-let-in-by-a-closed-gate',
    rule: 'a command whose gate is closed never begins (gate.ts GA1)',
    file: 'packages/cli/src/run/gate.ts',
    find: '|| exit 1; exec',
    replace: '; exec',
    killedBy: { file: 'packages/cli/src/run/gate.test.ts', test: 'a command whose gate is closed never begins (GA1)' },
  },
];
