/** Each sentence of redlock's documentation (`documented.ts`), with the rows that test it, or why none can. */

export interface Sentence {
  /** Its beginning. */
  readonly begins: string;
  readonly rows?: readonly string[];
  readonly untested?: string;
}

const row = (begins: string, ...rows: readonly string[]): Sentence => ({ begins, rows });
const none = (untested: string, ...beginnings: readonly string[]): readonly Sentence[] =>
  beginnings.map((begins) => ({ begins, untested }));

const DRIFT = 'the expiration is the moment of the call, and the duration, less the drift';
const RETRIES = 'the call makes retryCount further attempts';
const HELD_BY_USING = 'using holds the resources while the routine runs, and returns its value';
const ABORTED = 'an extension that fails aborts the signal, which has the error; using then rejects';
const EXTENDING = 'using extends its lock as long as the routine runs';
const RELEASED = 'a release frees the resources, and says how its attempts went';
const FIELDS = 'a lock has the fields that the types declare';
const MINORITY = 'the end of a minority of servers does not keep a resource from being acquired, extended and released';
const LOCKED_EVENTS =
  'each attempt that finds a resource locked emits a ResourceLockedError for each client of a quorum, at least';

export const SENTENCES: readonly Sentence[] = [
  row('It provides strong guarantees', MINORITY),
  row('A redlock object is instantiated with', 'an instance needs a client', 'the settings have defaults'),
  row('You should have one client for each', 'several clients'),
  row('The expected clock drift', DRIFT),
  row('multiplied by lock ttl', DRIFT, 'a call may have a drift factor of its own'),
  row('The max number of times Redlock', RETRIES, 'the call makes retryCount further attempts for several resources'),
  row('the time in ms between attempts', 'an attempt succeeds once the resource was released'),
  row('time in ms', 'each setting replaces its default'),
  row('the max time in ms randomly added', 'a retryDelay and a retryJitter of 0 are allowed'),
  row(
    'The minimum remaining time on a lock',
    EXTENDING,
    'a duration too short for the threshold is refused, and the routine is not run',
  ),
  row('The `using` method wraps', HELD_BY_USING, EXTENDING),
  row('In the case that auto-extension fails', ABORTED),
  row(
    'The first parameter is an array',
    HELD_BY_USING,
    'using with a duration with a fraction is refused',
    'a duration with a fraction is refused',
  ),
  row('Make sure any attempted lock extension', ABORTED),
  row('Alternatively, locks can be acquired', FIELDS, RELEASED),
  row('Acquire a lock.', FIELDS),
  row('Extend the lock.', 'extend returns another lock with the same value and resources'),
  row('Release the lock.', RELEASED),
  row('The `Redlock` class is published', 'the module has four exports'),
  row('Because redlock is designed for high availability', MINORITY),
  row(
    'Redlock emits an "error" event',
    LOCKED_EVENTS,
    'errors of a minority of servers',
    'an instance is an emitter of events; an error needs no listener',
  ),
  row('Ignore cases where a resource is explicitly', LOCKED_EVENTS),
  row('Log all other errors', 'without a quorum nothing is acquired, after retryCount further attempts'),
  row('Additionally, a per-attempt and per-client stats', FIELDS, RETRIES),
  row(
    'This is why redlock allows you',
    MINORITY,
    'without a quorum nothing is acquired, after retryCount further attempts',
  ),
  row(
    'Also note that when acquiring a lock on multiple',
    'all resources of a call are acquired, or none: each is locked',
    'all resources of a call are acquired, or none: one that is taken leaves the others free',
  ),
  row(
    'The purpose of redlock is to provide exclusivity',
    'a resource that is locked is refused',
    'a lock that was not released expires',
  ),
  row('That said, for many tasks', 'a resource that is locked is refused'),
  row('Note that with `retryCount=-1`', 'with a retryCount of -1 the attempts have no limit'),
  row('Generate a cryptographically random string', 'each lock has a value of its own'),
  row('This method runs `.quit()`', 'after quit, nothing is acquired', 'quit, while something is held'),
  row('This method acquires a locks', FIELDS, 'a lock that was not released expires'),
  row('This method unlocks the provided lock', RELEASED),
  row(
    'It will fail with an error if it is unable',
    'a second release fails',
    'a release of which one resource was taken away fails, and frees the others',
  ),
  row('It is safe to re-attempt a release', 'a release that failed can be repeated, and the lock expires in any case'),
  row(
    'This method extends a valid lock',
    'extend returns another lock with the same value and resources',
    'a lock that has expired cannot be extended',
  ),
  row('Execute a script on all clients', 'the scripts that run in Redis'),
  row('The resulting promise is resolved or rejected', RELEASED, FIELDS),
  row('Wrap and execute a routine', HELD_BY_USING, EXTENDING),
  row('The abort signal will be true if', ABORTED),
  row('In such a case, exclusivity can no longer', ABORTED),
  ...none(
    'describes the package, not its behaviour',
    ...['![Continuous Integration]', 'This is a node.js implementation', 'Please view the', 'Please see `CONTRIBUTING'],
    ...[
      'Beginning in version 5',
      'While this is universally',
      'For major version 5',
      'Please ensure that your project',
    ],
    ...['In version 6', 'However, it can be helpful to monitor', 'Do something'],
  ),
  ...none(
    'is about Redis and its clients',
    ...['Redlock is designed to use ioredis', 'Please make sure to use a client', 'It is completely possible'],
    ...['While you do gain high availability', 'Assume you are using eventually', 'Immediately after acquiring'],
    ...['Redis does its thing', 'If another process attempts', 'To learn more about the', 'Redis clusters require'],
    ...['If you are using a redis cluster', 'Chosing what data', 'Accordingly, it', 'This is the most straight'],
    ...['However, when locks will always', 'You can also acheive', 'Generate a sha1 hash'],
  ),
  ...none(
    'warns the reader of what nobody should do or conclude',
    ...['Properties of the Redlock object', 'For example, if you are on the smaller', 'This is further complicated'],
  ),
];
